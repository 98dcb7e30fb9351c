import type { DecoderManifest } from '../manifest.js';

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
  /** The largest magnitude of each row that is projected down, in no order; nothing where the graph does not tell. */
  readonly down: Float32Array;
}

/**
 * A decoder's graph whose outputs are `key.L`, `value.L` and `mixed.L`, float32 [B, S, heads * headSize], and
 * perhaps `down.L`, float32 [B * S, 1].
 */
export interface MeasuredGraph {
  /** Where the graph is. */
  readonly path: string;
  readonly tokenizerJson: string;
  readonly manifest: DecoderManifest;
  readonly signal?: AbortSignal | undefined;
}

/** Runs a decoder's graph over some text; the ranges are by layer. */
export type MeasureStates = (graph: MeasuredGraph) => Promise<StateRange[]>;
