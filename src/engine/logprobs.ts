import type { TokenLogprob } from './request.js';
import { largestCutoff } from './selection.js';

/**
 * Log-probabilities under softmax of `logits` [vocabulary]: of `token`, and of the `count` likeliest tokens,
 * likeliest first, equals by id.
 */
export function tokenLogprobs(
  logits: Float32Array,
  token: number,
  count: number,
): { logprob: number; topLogprobs: TokenLogprob[] } {
  let largest = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < logits.length; index++) largest = Math.max(largest, logits[index]!);
  let sum = 0;
  for (let index = 0; index < logits.length; index++) sum += Math.exp(logits[index]! - largest);
  const normalizer = largest + Math.log(sum);

  const topLogprobs: TokenLogprob[] = [];
  if (count > 0) {
    const { threshold, ties } = largestCutoff(logits, Math.min(count, logits.length));
    let tiesLeft = ties;
    for (let index = 0; index < logits.length; index++) {
      const logit = logits[index]!;
      if (logit > threshold || (logit === threshold && tiesLeft-- > 0)) {
        topLogprobs.push({ token: index, logprob: logit - normalizer });
      }
    }
    topLogprobs.sort((a, b) => b.logprob - a.logprob || a.token - b.token);
  }
  return { logprob: logits[token]! - normalizer, topLogprobs };
}
