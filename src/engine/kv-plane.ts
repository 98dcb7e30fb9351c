import type { KvFormat } from '../models/manifest.js';

/** What the cache keeps of one layer. */
export interface KvLayer<Part> {
  readonly keys: Part;
  readonly values: Part;
}

/** How a plane of the cache keeps a head's positions. */
export interface KvPlaneSettings {
  /** Key-value heads of a row. */
  readonly kvHeads: number;
  /** Numbers of a position of a head. */
  readonly headSize: number;
  readonly type: KvFormat;
}

/** Some rows of a plane as the graph takes them: [rows, kvHeads, capacity, headSize]. */
export interface KvTensor {
  readonly data: Float32Array | Int8Array;
  readonly dims: readonly number[];
}

/** What holds numbers of each format. */
export const kvArrays = { float32: Float32Array, int8: Int8Array };

/**
 * Keys or values of one layer for all rows: [rows, kvHeads, capacity, headSize], without gaps at whatever capacity it
 * has, so that neighbouring rows are an input of the graph without a copy.
 */
export class KvPlane {
  readonly #settings: KvPlaneSettings;
  readonly #array: Float32Array | Int8Array;
  #capacity = 0;

  /** The memory for `positions` is reserved now, but the system hands it out only as it is first written. */
  constructor(settings: KvPlaneSettings, positions: number) {
    const { kvHeads, headSize } = settings;
    this.#array = new kvArrays[settings.type](positions * kvHeads * headSize);
    this.#settings = settings;
  }

  /** Bytes of one position of a row. */
  get bytesPerPosition(): number {
    return this.#settings.kvHeads * this.#settings.headSize * this.#array.BYTES_PER_ELEMENT;
  }

  /** Rows first..first+count-1; no copy. */
  view(first: number, count: number): KvTensor {
    const { kvHeads, headSize } = this.#settings;
    const stride = kvHeads * headSize * this.#capacity;
    return {
      data: this.#array.subarray(first * stride, (first + count) * stride),
      dims: [count, kvHeads, this.#capacity, headSize],
    };
  }

  /** Copies `count` positions of a row from or to `outside`, [kvHeads, count, headSize]. */
  copy(
    direction: 'out' | 'in',
    row: number,
    position: number,
    count: number,
    outside: KvTensor['data'],
  ): void {
    const { kvHeads, headSize } = this.#settings;
    for (let head = 0; head < kvHeads; head++) {
      const at = ((row * kvHeads + head) * this.#capacity + position) * headSize;
      const inner = this.#array.subarray(at, at + count * headSize);
      const outer = outside.subarray(head * count * headSize, (head + 1) * count * headSize);
      if (direction === 'out') outer.set(inner);
      else inner.set(outer);
    }
  }

  /** The bytes of `count` positions from `offset` on, as `copy` takes them. */
  over(buffer: ArrayBuffer, offset: number, count: number): KvTensor['data'] {
    const length = count * this.#settings.kvHeads * this.#settings.headSize;
    return new kvArrays[this.#settings.type](buffer, offset, length);
  }

  /** Makes row `to` hold the first `length` positions of row `from`. */
  copyRow(from: number, to: number, length: number): void {
    const { kvHeads } = this.#settings;
    for (let head = 0; head < kvHeads; head++) {
      this.#move((from * kvHeads + head) * this.#capacity, (to * kvHeads + head) * this.#capacity, length);
    }
  }

  /** Moves `lengths[row]` positions of each row to their place under a new capacity. */
  resize(capacity: number, lengths: ArrayLike<number>): void {
    const { kvHeads } = this.#settings;
    const old = this.#capacity;
    this.#capacity = capacity;
    const heads = lengths.length * kvHeads;
    const move = (head: number) =>
      this.#move(head * old, head * capacity, lengths[Math.floor(head / kvHeads)]!);
    // In an order in which no head overwrites another that has yet to move.
    if (capacity > old) for (let head = heads - 1; head >= 0; head--) move(head);
    else for (let head = 0; head < heads; head++) move(head);
  }

  /** Moves positions, counted over all heads. */
  #move(from: number, to: number, positions: number): void {
    const { headSize } = this.#settings;
    if (from !== to) this.#array.copyWithin(to * headSize, from * headSize, (from + positions) * headSize);
  }
}
