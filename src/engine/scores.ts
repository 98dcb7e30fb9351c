import type { DecoderOutput } from './decoder-runner.js';
import type { Chunk } from './scheduler.js';

/** What a token is drawn by: all logits, or those of some tokens. */
export interface Scores {
  readonly logits: Float32Array;
  readonly tokens?: Int32Array;
}

/** Logits of a token that the graph selects rather than that all are looked at, of which there are tens of thousands. */
const mostTop = 64;

/** The scores behind the token that was wanted `place`th. */
export function scoresOf({ logits, top }: DecoderOutput, place: number, vocabularySize: number): Scores {
  const width = top ? top.count : vocabularySize;
  const own = <Numbers extends Float32Array | Int32Array>(all: Numbers) =>
    all.subarray(place * width, (place + 1) * width) as Numbers;
  return top ? { logits: own(top.logits), tokens: own(top.tokens) } : { logits: own(logits) };
}

/**
 * How many of the largest logits decide whatever is drawn when chunks have run; undefined when it is more than are worth
 * selecting, or all.
 */
export function topFor(chunks: readonly Chunk[], vocabularySize: number): number | undefined {
  const needed = Math.max(...chunks.map(neededBy));
  return needed <= Math.min(mostTop, vocabularySize) ? needed : undefined;
}

function neededBy({ sequence, tokens, drafts }: Chunk): number {
  const { generation, cached, choice } = sequence;
  const { prompt, topLogprobs } = generation.request;
  if (tokens === 0 || cached + tokens < prompt.length) return 1;
  if (topLogprobs !== undefined) return Number.POSITIVE_INFINITY;
  const drawing = choice ? [choice] : generation.choices;
  return Math.max(
    ...drawing.map(({ grammar, sampler }) =>
      grammar ? Number.POSITIVE_INFINITY : sampler.neededLogits(drafts?.length ?? 0),
    ),
  );
}
