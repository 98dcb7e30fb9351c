import type { DecoderOutput, DecoderShape } from './decoder-runner.js';

export interface KvCacheSettings {
  readonly shape: Pick<DecoderShape, 'layers' | 'kvHeads' | 'headSize'>;
  /** Rows at most. */
  readonly slots: number;
  /** Positions of a row at most. */
  readonly contextLength: number;
  /** Bytes that rows times capacity may take; never more than slots times the context. */
  readonly maxBytes: number;
}

/** What the cache must hold next. */
export interface KvDemand {
  readonly rows: number;
  /** Positions of the longest row. */
  readonly longest: number;
  /** Positions that the longest row may reach in its life: there is never a reason to hold more. */
  readonly limit: number;
}

/** The first `tokens` new positions of one row of an output, for one row of the cache. */
export interface KvPart {
  readonly row: number;
  readonly outputRow: number;
  readonly tokens: number;
}

/** Bytes that one position of one row takes over all layers. */
export function bytesPerPosition({ layers, kvHeads, headSize }: KvCacheSettings['shape']): number {
  return layers * 2 * kvHeads * headSize * Float32Array.BYTES_PER_ELEMENT;
}

/**
 * Keys and values of the rows in use, per layer a contiguous [rows, kvHeads, capacity, headSize], so that rows a..b
 * are an input of the graph without a copy. All rows share one capacity, which follows the longest.
 *
 * Whatever stands beyond a row's length is masked when the graph runs, but a mask cannot hide NaN or infinity:
 * callers append finite values only.
 */
export class KvCache {
  readonly bytesPerPosition: number;
  readonly #shape: KvCacheSettings['shape'];
  readonly #keys: Float32Array[];
  readonly #values: Float32Array[];
  /** Positions that each row holds. */
  readonly #lengths: Int32Array;
  #rows = 0;
  #capacity = 0;

  /** The memory is reserved now, but the system hands it out only as it is first written. */
  constructor({ shape, slots, contextLength, maxBytes }: KvCacheSettings) {
    this.#shape = shape;
    this.bytesPerPosition = bytesPerPosition(shape);
    const positions = Math.min(Math.floor(maxBytes / this.bytesPerPosition), slots * contextLength);
    const elements = positions * shape.kvHeads * shape.headSize;
    const allocate = () => Array.from({ length: shape.layers }, () => new Float32Array(elements));
    this.#keys = allocate();
    this.#values = allocate();
    this.#lengths = new Int32Array(slots);
  }

  get rows(): number {
    return this.#rows;
  }

  get capacity(): number {
    return this.#capacity;
  }

  get bytesUsed(): number {
    return this.#rows * this.#capacity * this.bytesPerPosition;
  }

  length(row: number): number {
    return this.#lengths[row]!;
  }

  /**
   * Makes room for `rows` rows of `longest` positions; rows that are new are empty, rows beyond are dropped. Changing
   * the capacity copies every row, so it grows ahead of need and shrinks behind it.
   */
  fit({ rows, longest, limit }: KvDemand): void {
    this.#lengths.fill(0, Math.min(rows, this.#rows), Math.max(rows, this.#rows));
    this.#rows = rows;
    const ahead = Math.min(limit, longest + headroom(longest));
    const tooSmall = this.#capacity < longest;
    const tooLarge = this.#capacity > limit || this.#capacity > longest + 2 * headroom(longest);
    if (rows === 0) this.#capacity = 0;
    else if (tooSmall || tooLarge) this.#resize(ahead);
  }

  /**
   * Appends new keys and values to rows, each from its own row of an output [rows, kvHeads, width, headSize]. The
   * capacity must have room for them. Layer by layer: an output is in the processor's cache but once.
   */
  append(output: Pick<DecoderOutput, 'keys' | 'values'>, width: number, parts: readonly KvPart[]): void {
    const { layers, kvHeads, headSize } = this.#shape;
    for (const { row, tokens } of parts) {
      if (this.#lengths[row]! + tokens > this.#capacity) {
        throw new Error('KV cache: append beyond capacity. This is a bug.');
      }
    }
    for (let layer = 0; layer < layers; layer++) {
      for (const [source, target] of [
        [output.keys[layer]!, this.#keys[layer]!],
        [output.values[layer]!, this.#values[layer]!],
      ] as const) {
        for (const { row, tokens, outputRow } of parts) {
          for (let head = 0; head < kvHeads; head++) {
            const from = (outputRow * kvHeads + head) * width * headSize;
            const to = ((row * kvHeads + head) * this.#capacity + this.#lengths[row]!) * headSize;
            copy(source, from, target, to, tokens * headSize);
          }
        }
      }
    }
    for (const { row, tokens } of parts) this.#lengths[row]! += tokens;
  }

  /** Makes row `to` hold what row `from` holds. */
  copyRow(from: number, to: number): void {
    const { kvHeads, headSize } = this.#shape;
    const length = this.#lengths[from]!;
    const stride = this.#capacity * headSize;
    for (const array of [...this.#keys, ...this.#values]) {
      for (let head = 0; head < kvHeads; head++) {
        const start = (from * kvHeads + head) * stride;
        array.copyWithin((to * kvHeads + head) * stride, start, start + length * headSize);
      }
    }
    this.#lengths[to] = length;
  }

  /** Rows first..first+count-1 as inputs of the graph, [count, kvHeads, capacity, headSize] per layer; no copy. */
  view(first: number, count: number): { keys: Float32Array[]; values: Float32Array[] } {
    const stride = this.#shape.kvHeads * this.#capacity * this.#shape.headSize;
    const part = (array: Float32Array) => array.subarray(first * stride, (first + count) * stride);
    return { keys: this.#keys.map(part), values: this.#values.map(part) };
  }

  /** Moves every row to its place under the new capacity, in an order in which none overwrites another. */
  #resize(capacity: number): void {
    const { kvHeads, headSize } = this.#shape;
    const old = this.#capacity;
    const blocks = this.#rows * kvHeads;
    if (blocks * capacity * headSize > this.#keys[0]!.length) {
      throw new Error('KV cache: capacity beyond the budget. This is a bug.');
    }
    for (const array of [...this.#keys, ...this.#values]) {
      for (let step = 0; step < blocks; step++) {
        const block = capacity > old ? blocks - 1 - step : step;
        const length = this.#lengths[Math.floor(block / kvHeads)]!;
        const from = block * old * headSize;
        array.copyWithin(block * capacity * headSize, from, from + length * headSize);
      }
    }
    this.#capacity = capacity;
  }
}

/**
 * Positions to grow ahead of need. Growing costs a copy of the cache, unused positions cost attention at every step
 * until they are used; both are proportional to the length, so the best distance goes with its square root. The
 * factor is measured: 32 rows of a 30-layer model took 27 ms to grow at 160 positions, and 0.044 ms a step per
 * unused position.
 */
function headroom(longest: number): number {
  return Math.max(16, 8 * Math.ceil((2.5 * Math.sqrt(longest)) / 8));
}

/** Below this many elements a loop is quicker than making two views. */
const shortCopy = 128;

function copy(source: Float32Array, from: number, target: Float32Array, to: number, elements: number): void {
  if (elements > shortCopy) {
    target.set(source.subarray(from, from + elements), to);
    return;
  }
  for (let index = 0; index < elements; index++) target[to + index] = source[from + index]!;
}
