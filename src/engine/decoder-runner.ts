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
  /** How many of the largest logits are wanted of each, K: at most all that there are. */
  readonly top: number;
  /** [F]: which of the W tokens all logits are wanted of. */
  readonly whole: BigInt64Array;
  /** By layer, what the cache has of the B rows. */
  readonly cache: readonly KvLayer<KvTensor>[];
}

/** The largest logits of each token wanted, the largest first and of equals the lower token. */
export interface TopLogits {
  /** K: how many there are of each. */
  readonly count: number;
  /** [W, K] */
  readonly tokens: Int32Array;
  /** [W, K] */
  readonly logits: Float32Array;
}

/** All logits of some of the tokens wanted; of many tokens they are megabytes. */
export interface WholeLogits {
  /** [F]: which of the W tokens. */
  readonly places: BigInt64Array;
  /** [F, vocabulary] */
  readonly logits: Float32Array;
  /** [F]: the log-probability of the likeliest token under softmax. */
  readonly likeliest: Float32Array;
}

/** The outputs of one run; the arrays hold them until the next one. */
export interface DecoderOutput {
  readonly top: TopLogits;
  readonly whole: WholeLogits;
}

/** Runs a decoder's graph. */
export interface DecoderRunner {
  readonly shape: DecoderShape;
  /** @throws Error when the runtime fails; a later run may succeed, since new positions do no harm where they are. */
  run(batch: DecoderBatch): Promise<DecoderOutput>;
  close(): Promise<void>;
}
