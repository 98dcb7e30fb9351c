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
  /** Up to how many new tokens of a row that has a past are computed at once as one after the other, to the bit. */
  readonly decodeWidth: number;
}

/**
 * The inputs of one run of a decoder: B rows, each with S new tokens after the positions it has in a cache of T. Rows
 * that have any run together with others only where S is 1. The arrays are used in place and belong to the caller
 * again when the run is over; those of the cache have the new positions then, padding included, from `lengths` less
 * S - 1 on.
 */
export interface DecoderBatch {
  /** B. */
  readonly rows: number;
  /** S: new tokens of a row, padding included. */
  readonly width: number;
  /** [B, S]. */
  readonly inputIds: BigInt64Array;
  /** [B]: the last new position of each row, padding included. */
  readonly lengths: Int32Array;
  /** [1]: the most positions of a row, cached and new; at most T. */
  readonly longest: Int32Array;
  /** [W]: which of the B * S new tokens' logits are wanted, counted row by row. */
  readonly wanted: BigInt64Array;
  /** How many of the largest logits the caller is content with, at most all that there are; it wants all when left out. */
  readonly top?: number | undefined;
  /** By layer, what the cache has of the B rows. */
  readonly cache: readonly KvLayer<KvTensor>[];
}

/** The largest logits of each token wanted, the largest first and of equals the lower token. */
export interface TopLogits {
  /** How many there are of each. */
  readonly count: number;
  /** [W, count] */
  readonly tokens: Int32Array;
  /** [W, count] */
  readonly logits: Float32Array;
}

/** The outputs of one run; the arrays hold them until the next one. */
export interface DecoderOutput {
  /** [W, vocabulary]; nothing when `top` is there. */
  readonly logits: Float32Array;
  /** There when the caller was content with it, and the runner can do so: all logits of many rows are megabytes. */
  readonly top?: TopLogits;
}

/** Runs a decoder's graph. */
export interface DecoderRunner {
  readonly shape: DecoderShape;
  /** @throws Error when the runtime fails; a later run may succeed, since new positions do no harm where they are. */
  run(batch: DecoderBatch): Promise<DecoderOutput>;
  close(): Promise<void>;
}
