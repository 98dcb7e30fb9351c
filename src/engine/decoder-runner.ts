import type { KvFormat } from '../models/manifest.js';
import type { KvLayer } from './kv-cache.js';
import type { KvTensor } from './kv-plane.js';

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
  /** By layer, the T positions of the B rows. */
  readonly past: readonly KvLayer<KvTensor>[];
}

/** The outputs of one run; the arrays are the caller's own. */
export interface DecoderOutput {
  /** [B, vocabulary]. */
  readonly logits: Float32Array;
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
