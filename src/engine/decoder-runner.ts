import type { KvFormat } from '../models/manifest.js';
import type { KvLayer, KvTensor } from './kv-plane.js';

/** The dimensions of a decoder that its engine must know. */
export interface DecoderShape {
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly vocabularySize: number;
  readonly kvFormat: KvFormat;
}

/**
 * The inputs of one run of a decoder: B rows, each with S new tokens after the positions it has in a cache of T. Rows
 * that have any run together with others only where S is 1. The arrays are used in place and belong to the caller
 * again when the run is over.
 */
export interface DecoderBatch {
  /** B. */
  readonly rows: number;
  /** S: new tokens of a row, padding included. */
  readonly width: number;
  /** [B, S]. */
  readonly inputIds: BigInt64Array;
  /** [B, S]: absolute positions. */
  readonly positionIds: BigInt64Array;
  /** [B]: the last new position of each row, padding included. */
  readonly lengths: Int32Array;
  /** [1]: the most positions of a row, cached and new. */
  readonly longest: Int32Array;
  /** [B]: which of the S new tokens' logits are wanted. */
  readonly last: BigInt64Array;
  /** Whether the caller is content with the largest logits of each row; it is not when left out. */
  readonly topIsEnough?: boolean;
  /** By layer, the T positions of the B rows. */
  readonly past: readonly KvLayer<KvTensor>[];
}

/** The largest logits of each row, the largest first and of equals the lower token. */
export interface TopLogits {
  /** How many there are of a row. */
  readonly count: number;
  /** [B, count] */
  readonly tokens: Int32Array;
  /** [B, count] */
  readonly logits: Float32Array;
}

/** The outputs of one run; the arrays are the caller's own. */
export interface DecoderOutput {
  /** [B, vocabulary]; nothing when `top` is there. */
  readonly logits: Float32Array;
  /** There when the caller was content with it, and the runner can do so: all logits of many rows are megabytes. */
  readonly top?: TopLogits;
  /** The new tokens' keys and values as the cache keeps them, one per layer, [B, S, kvHeads, headSize]. */
  readonly keys: readonly (Float32Array | Uint8Array)[];
  readonly values: readonly (Float32Array | Uint8Array)[];
}

/** Runs a decoder's graph. */
export interface DecoderRunner {
  readonly shape: DecoderShape;
  /** @throws Error when the runtime fails; a later run may succeed. */
  run(batch: DecoderBatch): Promise<DecoderOutput>;
  close(): Promise<void>;
}
