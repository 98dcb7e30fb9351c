import type { DecoderBatch } from './decoder-runner.js';

/**
 * One row of a run: its new tokens after `cached` positions. Without tokens the row stands idle, and what the run puts
 * behind its positions has no meaning.
 */
export interface BatchRow {
  readonly cached: number;
  readonly tokens: ArrayLike<number>;
}

/** Builds the inputs of runs in arrays that are used again for the next one. */
export class BatchBuilder {
  #ids = new BigInt64Array(0);
  #lengths = new Int32Array(0);
  #last = new BigInt64Array(0);
  readonly #longest = new Int32Array(1);

  /**
   * The inputs for `rows`, without the cache. Short rows are padded at the end; what the graph gives for padding and
   * for idle rows has no meaning. Valid until the next call.
   */
  build(rows: readonly BatchRow[]): Omit<DecoderBatch, 'cache'> {
    const width = Math.max(...rows.map(({ tokens }) => tokens.length));
    const size = rows.length * width;
    if (this.#ids.length < size) {
      this.#ids = new BigInt64Array(size);
    }
    if (this.#last.length < rows.length) {
      this.#last = new BigInt64Array(rows.length);
      this.#lengths = new Int32Array(rows.length);
    }
    this.#longest[0] = width + Math.max(...rows.map(({ cached }) => cached));
    for (const [row, { cached, tokens }] of rows.entries()) {
      for (let column = 0; column < width; column++) {
        this.#ids[row * width + column] = BigInt(column < tokens.length ? tokens[column]! : 0);
      }
      this.#lengths[row] = cached + width - 1;
      this.#last[row] = BigInt(Math.max(0, tokens.length - 1));
    }
    return {
      rows: rows.length,
      width,
      inputIds: this.#ids.subarray(0, size),
      lengths: this.#lengths.subarray(0, rows.length),
      longest: this.#longest,
      last: this.#last.subarray(0, rows.length),
    };
  }
}
