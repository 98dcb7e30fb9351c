import type { Grammar } from './grammar.js';

/** How the next token of a sequence is drawn. Order: bias, penalties, temperature, top-k, top-p and min-p, draw. */
export interface Sampling {
  /** 0 is greedy. */
  readonly temperature: number;
  /** Nucleus: 0 < topP <= 1. */
  readonly topP: number;
  /** How many of the likeliest tokens stay; -1 for all. */
  readonly topK: number;
  /** Tokens less likely than minP times the likeliest are dropped; 0 for none. */
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  /** Same seed, prompt and model: same tokens. Choice i of a request uses a generator derived from seed and i. */
  readonly seed: number;
  /** Added to the logits before anything else. */
  readonly logitBias: ReadonlyArray<readonly [token: number, bias: number]>;
}

/** A request for `choices` completions of one prompt. */
export interface GenerateRequest {
  readonly id: string;
  /** Whose it is. What was read of a prompt is kept for requests of the same scope that begin alike. */
  readonly scope: string;
  readonly prompt: Int32Array;
  /** At most this many tokens per choice; prompt and completion together fit the context. At least 1. */
  readonly maxTokens: number;
  readonly choices: number;
  readonly sampling: Sampling;
  /** A choice ends when one of these is drawn; it is reported, and is not part of the text. */
  readonly endTokens: readonly number[];
  /** How many alternatives to report with each token; absent for no log-probabilities at all. */
  readonly topLogprobs?: number;
  /** What every choice must look like; needs an engine that was given the vocabulary. */
  readonly grammar?: Grammar;
  readonly priority: 'interactive' | 'batch';
}

/** A request to run token sequences through an encoder. */
export interface EncodeRequest {
  readonly id: string;
  /** One entry per sequence: token ids and, where the model takes them, token types of the same length. */
  readonly sequences: ReadonlyArray<{ readonly tokens: Int32Array; readonly types?: Int32Array }>;
  readonly priority: 'interactive' | 'batch';
}

/** A token with its log-probability under the model's own distribution (before bias and sampling). */
export interface TokenLogprob {
  readonly token: number;
  readonly logprob: number;
}

/** What one step of the engine brought to one choice of one request. */
export interface TokenEvent {
  readonly type: 'token';
  readonly id: string;
  readonly choice: number;
  readonly token: number;
  readonly logprob?: number;
  /** Likeliest first. */
  readonly topLogprobs?: readonly TokenLogprob[];
  /** `end`: `token` is an end token. `length`: maxTokens or the context is reached with this token. */
  readonly finish?: 'end' | 'length';
}

/** The first step of a request has begun. `cachedTokens` of the prompt were found in the cache. */
export interface AdmittedEvent {
  readonly type: 'admitted';
  readonly id: string;
  readonly cachedTokens: number;
}

/** The rows of an encode request, in the order of its sequences: `rows` is [sequences, dimension]. */
export interface EncodedEvent {
  readonly type: 'encoded';
  readonly id: string;
  readonly rows: Float32Array;
}

/** The request was cancelled and holds nothing any more. Also sent for an id that is not known. */
export interface CancelledEvent {
  readonly type: 'cancelled';
  readonly id: string;
}

/** The request cannot be run (a bug or the runtime's failure); it holds nothing any more. */
export interface FailedEvent {
  readonly type: 'failed';
  readonly id: string;
  readonly reason: string;
}

export type EngineEvent = AdmittedEvent | TokenEvent | EncodedEvent | CancelledEvent | FailedEvent;

/** The engine's own account of itself. */
export interface EngineCounters {
  /** Choices that hold a slot, or encode requests that are not finished. */
  readonly running: number;
  /** Requests that wait for a slot or for memory. */
  readonly waiting: number;
  readonly slots: number;
  readonly kvBytesUsed: number;
  readonly kvBytesBudget: number;
  /** Positions that rows hold. */
  readonly kvPositions: number;
  /** Beginnings of prompts that are kept. */
  readonly prefixBytesUsed: number;
  /** Totals since the engine started. */
  readonly steps: number;
  readonly prefillTokens: number;
  /** Tokens of prompts that were not read again. */
  readonly cachedTokens: number;
  readonly decodeTokens: number;
  /** Tokens that were run because they might be drawn next, and those of them that were. */
  readonly draftTokens: number;
  readonly acceptedDraftTokens: number;
  readonly encodedTokens: number;
  readonly cancelled: number;
}
