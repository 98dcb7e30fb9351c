import type { Manifest } from '../manifest.js';

/**
 * How far a layer's keys and values reach, and what attention mixes of the values, by element in the order of their
 * heads. Of keys it is the largest length of the pair that rotary positions turn, for both its elements: at some other
 * position either may be as large. Of the others it is the largest magnitude.
 */
export interface StateRange {
  /** [kvHeads * headSize] */
  readonly key: Float32Array;
  /** [kvHeads * headSize] */
  readonly value: Float32Array;
  /** [heads * headSize] */
  readonly mixed: Float32Array;
}

/** What is measured of a model. */
export interface Measured {
  /** Of a decoder, by layer. */
  readonly states: readonly StateRange[];
  /** By the name of what they are multiplied with, the largest magnitudes of rows, in no order. */
  readonly rows: ReadonlyMap<string, Float32Array>;
}

/**
 * A model's graph whose outputs are, of a decoder, `key.L`, `value.L` and `mixed.L`, float32 [B, S, its width], and of
 * any model `rows.NAME`, float32 [B * S, 1].
 */
export interface MeasuredGraph {
  /** Where the graph is. */
  readonly path: string;
  readonly tokenizerJson: string;
  readonly manifest: Manifest;
  readonly signal?: AbortSignal | undefined;
}

/** Runs a model's graph over some text. */
export type MeasureStates = (graph: MeasuredGraph) => Promise<Measured>;
