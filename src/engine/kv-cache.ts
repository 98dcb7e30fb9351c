import type { DecoderShape } from './decoder-runner.js';
import { type KvLayer, KvPlane, type KvTensor, kvArrays } from './kv-plane.js';

export type KvShape = Pick<DecoderShape, 'layers' | 'kvHeads' | 'headSize' | 'kvFormat'>;

/** Bytes that one position of one row takes over all layers. */
export function bytesPerPosition({ layers, kvHeads, headSize, kvFormat }: KvShape): number {
  return layers * kvHeads * 2 * headSize * kvArrays[kvFormat].BYTES_PER_ELEMENT;
}

export interface KvCacheSettings {
  readonly shape: KvShape;
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

interface KvView {
  readonly first: number;
  readonly count: number;
  readonly capacity: number;
  readonly layers: readonly KvLayer<KvTensor>[];
}

/**
 * Keys and values of the rows in use. All rows share one capacity, which follows the longest, and neighbouring rows
 * go to the graph without a copy, which puts new positions into them.
 */
export class KvCache {
  readonly bytesPerPosition: number;
  readonly #layers: readonly KvLayer<KvPlane>[];
  readonly #positions: number;
  /** Positions that each row holds. */
  readonly #lengths: Int32Array;
  #rows = 0;
  #capacity = 0;
  /** The rows looked at last. */
  #view: KvView | undefined;

  constructor({ shape, slots, contextLength, maxBytes }: KvCacheSettings) {
    this.bytesPerPosition = bytesPerPosition(shape);
    this.#positions = Math.min(Math.floor(maxBytes / this.bytesPerPosition), slots * contextLength);
    const { kvHeads, headSize, kvFormat: type } = shape;
    const plane = () => new KvPlane({ kvHeads, headSize, type }, this.#positions);
    this.#layers = Array.from({ length: shape.layers }, () => ({ keys: plane(), values: plane() }));
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

  /** Says that a run of the graph has put `tokens` new positions behind those of a row. */
  advance(row: number, tokens: number): void {
    const length = this.#lengths[row]! + tokens;
    if (length > this.#capacity) throw new Error('KV cache: positions beyond capacity. This is a bug.');
    this.#lengths[row] = length;
  }

  /** Copies `count` positions of a row. @param bytes as many as those take, on a boundary of 4 */
  read(row: number, position: number, count: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#copy('out', { row, position, count }, bytes);
  }

  /** Appends `count` positions that were read. */
  restore(row: number, count: number, bytes: Uint8Array<ArrayBuffer>): void {
    const position = this.#lengths[row]!;
    this.advance(row, count);
    this.#copy('in', { row, position, count }, bytes);
  }

  /** Makes row `to` hold what row `from` holds. */
  copyRow(from: number, to: number): void {
    const length = this.#lengths[from]!;
    for (const plane of this.#planes()) plane.copyRow(from, to, length);
    this.#lengths[to] = length;
  }

  /**
   * Rows first..first+count-1 as the graph takes and changes them, by layer; no copy. The same object for the same rows,
   * as long as the capacity is the same.
   */
  view(first: number, count: number): readonly KvLayer<KvTensor>[] {
    const known = this.#view;
    if (known && known.first === first && known.count === count && known.capacity === this.#capacity) {
      return known.layers;
    }
    const layers = this.#layers.map(({ keys, values }) => ({
      keys: keys.view(first, count),
      values: values.view(first, count),
    }));
    this.#view = { first, count, capacity: this.#capacity, layers };
    return layers;
  }

  #copy(
    direction: 'out' | 'in',
    { row, position, count }: { row: number; position: number; count: number },
    { buffer, byteOffset }: Uint8Array<ArrayBuffer>,
  ): void {
    let offset = byteOffset;
    for (const plane of this.#planes()) {
      plane.copy(direction, row, position, count, plane.over(buffer, offset, count));
      offset += count * plane.bytesPerPosition;
    }
  }

  *#planes(): Generator<KvPlane> {
    for (const { keys, values } of this.#layers) {
      yield keys;
      yield values;
    }
  }

  #resize(capacity: number): void {
    if (this.#rows * capacity > this.#positions) {
      throw new Error('KV cache: capacity beyond the budget. This is a bug.');
    }
    const lengths = this.#lengths.subarray(0, this.#rows);
    for (const plane of this.#planes()) plane.resize(capacity, lengths);
    this.#capacity = capacity;
  }
}

/**
 * Positions to grow ahead of need. Growing costs a copy of the cache, unused positions put what is read further apart;
 * the first is proportional to the length, so the best distance goes with its square root. The factor is measured: 32
 * rows of a 30-layer model took 3 ms to grow at 160 positions, and about 0.008 ms a step per unused position.
 */
function headroom(longest: number): number {
  return Math.max(16, 8 * Math.ceil((2.5 * Math.sqrt(longest)) / 8));
}
