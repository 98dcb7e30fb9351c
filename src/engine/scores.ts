import { topLogits } from '../models/manifest.js';
import type { DecoderOutput } from './decoder-runner.js';
import type { Chunk } from './scheduler.js';

/** What the tokens of one row of a run are drawn by: all logits, or those of some tokens. */
export interface Scores {
  readonly logits: Float32Array;
  readonly tokens?: Int32Array;
}

/** The scores of row `row`. */
export function scoresOf({ logits, top }: DecoderOutput, row: number, vocabularySize: number): Scores {
  const width = top ? top.count : vocabularySize;
  const own = <Numbers extends Float32Array | Int32Array>(all: Numbers) =>
    all.subarray(row * width, (row + 1) * width) as Numbers;
  return top ? { logits: own(top.logits), tokens: own(top.tokens) } : { logits: own(logits) };
}

/** Whether whatever is drawn when a chunk has run is decided by the largest logits. */
export function isDecidedByTop({ sequence, tokens }: Chunk): boolean {
  const { generation, cached, choice } = sequence;
  const { prompt, topLogprobs } = generation.request;
  if (tokens === 0 || cached + tokens < prompt.length) return true;
  const drawing = choice ? [choice] : generation.choices;
  return (
    topLogprobs === undefined &&
    drawing.every(({ grammar, sampler }) => !grammar && sampler.isDecidedBy(topLogits))
  );
}
