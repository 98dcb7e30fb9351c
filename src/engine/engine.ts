import type { ExecutionProvider, Manifest } from '../models/manifest.js';
import type { Vocabulary } from './grammar.js';
import type { EncodeRequest, EngineCounters, EngineEvent, GenerateRequest } from './request.js';

/** How an engine runs. */
export interface EngineSettings {
  /** The compiled model's folder. */
  readonly folder: string;
  /** Sequences decoded together. */
  readonly maxSequences: number;
  /** Positions of one sequence, prompt and completion together; at most the manifest's contextLength. */
  readonly contextLength: number;
  /** Memory for the KV cache, in bytes. */
  readonly kvBytes: number;
  /** Tokens of prefill (or of an encoder's batch) in one step. */
  readonly maxBatchTokens: number;
  /** Prompts are cut at multiples of as many tokens; a decoder's only. */
  readonly chunkTokens: number;
  /** Memory for the beginnings of prompts, which requests that begin alike need not read again, in bytes. */
  readonly prefixBytes: number;
  /** Threads of ONNX Runtime. */
  readonly threads: number;
  /** What runs the graph: the processor when left out. */
  readonly provider?: ExecutionProvider | undefined;
  /** A decoder that judges documents, and serves as an encoder: how much likelier it finds yes than no comes next. */
  readonly judge?: JudgeTokens | undefined;
}

/** The tokens of a judge's two answers. */
export interface JudgeTokens {
  readonly yes: number;
  readonly no: number;
}

/**
 * An engine as the rest of the worker sees it. Calls return at once; what comes of them arrives at the listener,
 * the events of one step together.
 */
export interface Engine {
  readonly manifest: Manifest;
  /** The tokens of the model, once, before the first request with a grammar. */
  useVocabulary(vocabulary: Vocabulary): void;
  /** @throws Error when the model is not a decoder. */
  generate(request: GenerateRequest): void;
  /** @throws Error when the model is not an encoder. */
  encode(request: EncodeRequest): void;
  /** Drops a request wherever it is, or one choice of it; a `cancelled` event follows when it was the whole request. */
  cancel(id: string, choice?: number): void;
  counters(): Promise<EngineCounters>;
  /** Called with the events of each step, in order. Set it before the first request. */
  onEvents(listener: (events: readonly EngineEvent[]) => void): void;
  /** Called when the engine cannot go on; every request it held is lost. */
  onFailure(listener: (error: Error) => void): void;
  /** Stops the thread and frees the session. Idempotent. */
  close(): Promise<void>;
}
