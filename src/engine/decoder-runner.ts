import type { KvFormat } from '../models/manifest.js';
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
 * The inputs of one run of a decoder: B rows, each with S new tokens after T cached positions. The arrays are used
 * in place and belong to the caller again when the run is over.
 */
export interface DecoderBatch {
  /** B. */
  readonly rows: number;
  /** S: new tokens of a row, padding included. */
  readonly width: number;
  /** T: cached positions of a row, unused ones included; at least 1. */
  readonly capacity: number;
  /** [B, S]. */
  readonly inputIds: BigInt64Array;
  /** [B, S]: absolute positions. */
  readonly positionIds: BigInt64Array;
  /**
   * [B, 1, G*S, S+T], added to the attention scores; G is query heads per key-value head, and row g*S+s belongs to
   * query s of the group's member g. The first S columns are the new tokens, the last T the cache positions.
   */
  readonly mask: Float32Array;
  /** [B]: which of the S new tokens' logits are wanted. */
  readonly last: BigInt64Array;
  /** By layer, what it keeps of the T positions of the B rows. */
  readonly past: readonly (readonly KvTensor[])[];
}

/** The outputs of one run; the arrays are the caller's own. */
export interface DecoderOutput {
  /** [B, vocabulary]. */
  readonly logits: Float32Array;
  /** The new tokens' keys and values, one per layer, [B, kvHeads, S, headSize]. */
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
}

/** Runs a decoder's graph. */
export interface DecoderRunner {
  readonly shape: DecoderShape;
  /** @throws Error when the runtime fails; a later run may succeed. */
  run(batch: DecoderBatch): Promise<DecoderOutput>;
  close(): Promise<void>;
}
