import type { TokenLogprob } from './request.js';
import type { AllScores, Scores } from './scores.js';

/**
 * Log-probabilities under softmax of all logits: of `token`, and of the `count` likeliest tokens, likeliest first,
 * equals by id; `scores` has that many of the largest at least, or all that there are.
 */
export function tokenLogprobs(
  { top, all: { logits, normalizer } }: Scores & { readonly all: AllScores },
  token: number,
  count: number,
): { logprob: number; topLogprobs: TokenLogprob[] } {
  const topLogprobs = Array.from(top.tokens.subarray(0, count), (likely, place): TokenLogprob => {
    return { token: likely, logprob: top.logits[place]! - normalizer };
  });
  return { logprob: logits[token]! - normalizer, topLogprobs };
}
