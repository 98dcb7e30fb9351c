import type { DecoderBatch } from './decoder-runner.js';

/** One row of a run: its new tokens after `cached` positions. Without tokens the row stands idle. */
export interface BatchRow {
  readonly cached: number;
  readonly tokens: ArrayLike<number>;
}

/**
 * Added to the score of a position that must not be seen. Finite, so that a row of padding, which sees little but
 * itself, stays a number; the softmax of it is zero beside any real score.
 */
export const masked = -1e9;

/** Builds the inputs of runs in arrays that are used again for the next one. */
export class BatchBuilder {
  readonly #groupSize: number;
  #ids = new BigInt64Array(0);
  #positions = new BigInt64Array(0);
  #last = new BigInt64Array(0);
  #mask = new Float32Array(0);

  /** @param groupSize query heads per key-value head. */
  constructor(groupSize: number) {
    this.#groupSize = groupSize;
  }

  /**
   * The inputs for `rows` over a cache of `capacity` positions, without the cache. Short rows are padded at the end;
   * what the graph gives for padding and for idle rows has no meaning. Valid until the next call.
   */
  build(rows: readonly BatchRow[], capacity: number): Omit<DecoderBatch, 'past'> {
    const width = Math.max(...rows.map(({ tokens }) => tokens.length));
    const size = rows.length * width;
    const maskSize = size * this.#groupSize * (capacity + width);
    if (this.#ids.length < size) {
      this.#ids = new BigInt64Array(size);
      this.#positions = new BigInt64Array(size);
    }
    if (this.#last.length < rows.length) this.#last = new BigInt64Array(rows.length);
    if (this.#mask.length < maskSize) this.#mask = new Float32Array(maskSize);

    const mask = this.#mask.subarray(0, maskSize);
    mask.fill(masked);
    for (const [row, { cached, tokens }] of rows.entries()) {
      for (let column = 0; column < width; column++) {
        const real = column < tokens.length;
        this.#ids[row * width + column] = BigInt(real ? tokens[column]! : 0);
        this.#positions[row * width + column] = BigInt(real ? cached + column : 0);
      }
      this.#last[row] = BigInt(Math.max(0, tokens.length - 1));
      this.#unmask(mask, row, width, capacity, cached);
    }
    return {
      rows: rows.length,
      width,
      capacity,
      inputIds: this.#ids.subarray(0, size),
      positionIds: this.#positions.subarray(0, size),
      mask,
      last: this.#last.subarray(0, rows.length),
    };
  }

  /** Query s sees the cached positions and the new tokens up to itself. */
  #unmask(mask: Float32Array, row: number, width: number, capacity: number, cached: number): void {
    const columns = capacity + width;
    for (let member = 0; member < this.#groupSize; member++) {
      for (let query = 0; query < width; query++) {
        const start = ((row * this.#groupSize + member) * width + query) * columns;
        mask.fill(0, start, start + query + 1);
        mask.fill(0, start + width, start + width + cached);
      }
    }
  }
}
