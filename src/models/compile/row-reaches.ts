import type { Value } from './graph.js';
import type { Rows } from './projection.js';

/**
 * How much larger than the middle one the largest row may be where all rows before a layer are rounded by one scale,
 * which saves five operators. In some layers of decoders the first token's are hundreds of times as large as the rest.
 * With 4 the down projections of 16 of SmolLM2-135M's 30 layers have one, and the KL divergence to float32 grows by
 * 0.0007; with 7 it is 23 of them, and 0.0009 more. Of all-MiniLM-L6-v2 every product has one: similarities are 0.0045
 * off (root mean square) where they were 0.0027.
 */
const evenness = 4;

/** The share of the largest row at which they are cut off. With 0.6 or 1 the KL divergence is hardly larger. */
const cutOff = 0.8;

/**
 * How far the numbers of the rows before each layer reach, where those are so much alike that one measure does for all.
 * It is measured on the model itself; until then there is none.
 */
export class RowReaches {
  readonly #largest = new Map<string, Value>();
  readonly #reaches = new Map<string, number>();

  /** By layer, the largest magnitude of each of its rows, [R, 1], where rows are rounded by it. */
  get largest(): ReadonlyMap<string, Value> {
    return this.#largest;
  }

  /** Rows before `layer`. */
  rows(layer: string, { value, count }: Pick<Rows, 'value' | 'count'>): Rows {
    return {
      value,
      count,
      reach: () => this.#reaches.get(layer),
      onLargest: (largest) => {
        this.#largest.set(layer, largest);
      },
    };
  }

  /** @param measured by layer, the largest magnitudes of rows, in no order */
  set(measured: ReadonlyMap<string, Float32Array>): void {
    for (const [layer, rows] of measured) {
      const sorted = rows.toSorted();
      const most = sorted.at(-1);
      const median = sorted[sorted.length >> 1];
      if (most && median && most <= evenness * median) this.#reaches.set(layer, cutOff * most);
    }
  }
}
