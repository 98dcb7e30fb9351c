import type { BatchRow } from './batch.js';
import type { DecoderOutput } from './decoder-runner.js';
import type { Chunk } from './scheduler.js';

/** What a token is drawn by. */
export interface Scores {
  /** The largest logits and their tokens, the largest first and of equals the lower token. */
  readonly top: { readonly logits: Float32Array; readonly tokens: Int32Array };
  /** There when all were wanted. */
  readonly all?: AllScores;
}

export interface AllScores {
  /** [vocabulary] */
  readonly logits: Float32Array;
  /** What a logit is less by as a log-probability. */
  readonly normalizer: number;
}

/** Logits of a token that the graph selects rather than that all are looked at, of which there are tens of thousands. */
const mostTop = 64;

/** The scores behind the token that was wanted `place`th. */
export function scoresOf({ top, whole }: DecoderOutput, place: number, vocabularySize: number): Scores {
  const from = place * top.count;
  const largest = {
    logits: top.logits.subarray(from, from + top.count),
    tokens: top.tokens.subarray(from, from + top.count),
  };
  const row = whole.places.indexOf(BigInt(place));
  if (row === -1) return { top: largest };
  const logits = whole.logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
  return { top: largest, all: { logits, normalizer: largest.logits[0]! - whole.likeliest[row]! } };
}

/** Which logits behind the wanted tokens of a chunk must be known to draw from them. */
export function neededScores(
  { sequence, tokens, drafts }: Chunk,
  vocabularySize: number,
): Required<Pick<BatchRow, 'top' | 'whole'>> {
  const { generation, cached, choice } = sequence;
  const { prompt, topLogprobs } = generation.request;
  if (tokens === 0 || cached + tokens < prompt.length) return { top: 1, whole: false };
  const drawing = choice ? [choice] : generation.choices;
  const drawn = Math.max(
    ...drawing.map(({ grammar, sampler }) =>
      grammar ? Number.POSITIVE_INFINITY : sampler.neededLogits(drafts?.length ?? 0),
    ),
  );
  const isOfTop = drawn <= Math.min(mostTop, vocabularySize);
  const told = Math.min(topLogprobs ?? 0, vocabularySize);
  return { top: Math.max(1, isOfTop ? drawn : 1, told), whole: !isOfTop || topLogprobs !== undefined };
}
