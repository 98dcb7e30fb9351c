/** One request that was answered in full. Times are in milliseconds. */
export interface Exchange {
  readonly latencyMs: number;
  /** Until the first text of the answer; undefined when it had none, or is not written piece by piece. */
  readonly firstTokenMs?: number;
  /** Between each piece of text and the next. */
  readonly gapsMs: readonly number[];
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** Documents ranked. */
  readonly documents: number;
}

/** Makes one request and reads its answer. `index` names the request: the same index is the same request. */
export type Send = (index: number, signal: AbortSignal) => Promise<Exchange>;
