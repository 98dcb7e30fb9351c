import type { TokenLogprob } from './request.js';
import { indicesOfLargest } from './selection.js';

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

  const likeliest = new Int32Array(count > 0 ? logits.length : 0);
  const kept = Math.min(count, logits.length);
  if (kept > 0) indicesOfLargest(logits, kept, likeliest);
  const topLogprobs = Array.from(likeliest.subarray(0, kept), (index): TokenLogprob => {
    return { token: index, logprob: logits[index]! - normalizer };
  });
  topLogprobs.sort((a, b) => b.logprob - a.logprob || a.token - b.token);
  return { logprob: logits[token]! - normalizer, topLogprobs };
}
