import type { DecoderBatch } from './decoder-runner.js';

/**
 * One row of a run: its new tokens after `cached` positions. Without tokens the row stands idle, and what the run puts
 * behind its positions has no meaning.
 */
export interface BatchRow {
  readonly cached: number;
  readonly tokens: ArrayLike<number>;
  /** How many of its last tokens' logits are wanted; 1 when left out. An idle row has those of one token. */
  readonly wanted?: number;
  /** How many of their largest logits are wanted at least; 1 when left out. */
  readonly top?: number;
  /** Whether all their logits are wanted besides, which they are when left out. */
  readonly whole?: boolean;
}

/** Builds the inputs of runs in arrays that are used again for the next one. */
export class BatchBuilder {
  #ids = new BigInt64Array(0);
  #lengths = new Int32Array(0);
  #wanted = new BigInt64Array(0);
  #whole = new BigInt64Array(0);
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
    if (this.#lengths.length < rows.length) this.#lengths = new Int32Array(rows.length);
    const count = rows.reduce((sum, { wanted = 1 }) => sum + wanted, 0);
    if (this.#wanted.length < count) {
      this.#wanted = new BigInt64Array(count);
      this.#whole = new BigInt64Array(count);
    }
    let filled = 0;
    let filledWhole = 0;
    this.#longest[0] = width + Math.max(...rows.map(({ cached }) => cached));
    for (const [row, { cached, tokens, wanted = 1, whole = true }] of rows.entries()) {
      for (let column = 0; column < width; column++) {
        this.#ids[row * width + column] = BigInt(column < tokens.length ? tokens[column]! : 0);
      }
      this.#lengths[row] = cached + width - 1;
      const end = row * width + Math.max(1, tokens.length);
      for (let token = end - wanted; token < end; token++) {
        if (whole) this.#whole[filledWhole++] = BigInt(filled);
        this.#wanted[filled++] = BigInt(token);
      }
    }
    return {
      rows: rows.length,
      width,
      inputIds: this.#ids.subarray(0, size),
      lengths: this.#lengths.subarray(0, rows.length),
      longest: this.#longest,
      wanted: this.#wanted.subarray(0, count),
      top: Math.max(...rows.map(({ top = 1 }) => top)),
      whole: this.#whole.subarray(0, filledWhole),
    };
  }
}
