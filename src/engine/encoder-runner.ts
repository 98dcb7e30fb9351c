/** The dimensions of an encoder that its engine must know. */
export interface EncoderShape {
  /** Length of an output row. */
  readonly dimension: number;
  readonly vocabularySize: number;
  readonly paddingToken: number;
  /** The position of a sequence's first token. */
  readonly firstPosition: number;
  /** Whether the graph takes token types. */
  readonly tokenTypes: boolean;
}

/** The inputs of one run, all [rows, width]. Used in place; they belong to the caller again when it is over. */
export interface EncoderBatch {
  readonly rows: number;
  readonly width: number;
  readonly inputIds: BigInt64Array;
  /** 1 for a token, 0 for padding. */
  readonly attentionMask: BigInt64Array;
  readonly positionIds: BigInt64Array;
  /** Empty where the graph takes none. */
  readonly tokenTypeIds: BigInt64Array;
}

/** Runs an encoder's graph. */
export interface EncoderRunner {
  readonly shape: EncoderShape;
  /** Returns [rows, dimension], the caller's own. @throws Error when the runtime fails; a later run may succeed. */
  run(batch: EncoderBatch): Promise<Float32Array>;
  close(): Promise<void>;
}
