import type { GrammarFollower } from './grammar.js';
import type { GenerateRequest } from './request.js';
import { Sampler, type SamplerScratch } from './sampler.js';
import { TokenHistory } from './token-history.js';

/**
 * A request inside the engine. Its states, in order:
 *
 * - waiting: in the scheduler's queue; holds nothing.
 * - prefilling: one sequence, without a choice yet, reads the prompt for all choices; a slot is kept for each.
 * - decoding: each living choice has a sequence of its own.
 * - gone: no choice lives; the scheduler has forgotten it.
 *
 * Only the scheduler moves it from one to the next.
 */
export interface Generation {
  readonly request: GenerateRequest;
  /** Tokens that each choice may draw: maxTokens, or what the context leaves. */
  readonly maxDrawn: number;
  /** Positions that one choice may come to hold in the cache: its last token never gets there. */
  readonly limit: number;
  /** The choices that live: neither finished nor cancelled. */
  choices: Choice[];
}

/** One completion of a request. */
export interface Choice {
  readonly index: number;
  readonly sampler: Sampler;
  /** Where the request has a grammar; to be disposed when the choice goes. */
  readonly grammar: GrammarFollower | undefined;
  readonly history: TokenHistory;
  /** The token drawn last, which is fed next. */
  token: number;
  drawn: number;
}

/** What occupies one row of the cache. */
export interface Sequence {
  readonly generation: Generation;
  /** Its row; -1 once it has left. */
  row: number;
  /** Positions in the cache. */
  cached: number;
  /** Undefined while the prompt is read. */
  choice: Choice | undefined;
}

export interface GenerationSettings {
  readonly contextLength: number;
  readonly scratch: SamplerScratch;
  /** One for each choice, where the request has a grammar. */
  readonly followers?: readonly GrammarFollower[];
}

/** A request as it waits. The prompt is shorter than the context. */
export function createGeneration(
  request: GenerateRequest,
  { contextLength, scratch, followers }: GenerationSettings,
): Generation {
  const maxDrawn = Math.min(request.maxTokens, contextLength - request.prompt.length);
  return {
    request,
    maxDrawn,
    limit: request.prompt.length + maxDrawn - 1,
    choices: Array.from({ length: request.choices }, (_, index) => ({
      index,
      sampler: new Sampler(request.sampling, index, scratch),
      grammar: followers?.[index],
      history: new TokenHistory(request.prompt),
      token: 0,
      drawn: 0,
    })),
  };
}
