import type { KvFormat } from '../manifest.js';
import type { Graph, Value } from './graph.js';
import type { LinearLayer } from './linear-layer.js';
import type { DecoderSource } from './rotated-decoder.js';

/** Rows of activations, one per token. */
export interface Rows {
  /** float32 [R, width] */
  readonly value: Value;
  /** int64 [1]: R. The same value for all rows of the same number, so that what depends on it is made once. */
  readonly count: Value;
  /**
   * The magnitude up to which its numbers can be rounded, the same for all rows; asked for when the graph is encoded.
   * Rows without one are each rounded by their own largest magnitude, which takes more operators.
   */
  readonly reach?: () => number | undefined;
  /** Told which value holds the largest magnitude of each row as it is rounded, float32 [R, 1]. */
  readonly onLargest?: (largest: Value) => void;
}

/** How linear layers are stored and multiplied. */
export interface Projection {
  /** The format of the cache that goes with it: as exact as the rest, and no more. */
  readonly kvFormat: KvFormat;
  /** Rewrites a decoder so that it computes the same and takes less harm from the format. */
  prepare(decoder: DecoderSource): DecoderSource;
  /**
   * Adds `rows` x weight^T + bias to the graph and stores the layer's weights.
   * @param rows of width `layer.inputs`
   * @returns float32 [R, layer.outputs]; a row depends on its own input row only
   */
  project(graph: Graph, rows: Rows, layer: LinearLayer): Promise<Value>;
}
