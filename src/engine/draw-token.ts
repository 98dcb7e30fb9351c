import { tokenLogprobs } from './logprobs.js';
import type { TokenEvent } from './request.js';
import type { AllScores, Scores } from './scores.js';
import type { Choice } from './sequence.js';
import type { Stopwatch } from './stopwatch.js';

export interface DrawTokenOptions {
  /** How many alternatives to tell with the token; no log-probabilities at all when left out. */
  readonly topLogprobs: number | undefined;
  /** Takes the time of what is done here. */
  readonly stopwatch: Pick<Stopwatch<'sample'>, 'time'>;
}

export type DrawnToken = Pick<TokenEvent, 'token' | 'logprob' | 'topLogprobs'>;

/** A grammar that no token goes on with. */
export class GrammarFailure extends Error {}

/**
 * Draws the next token of a choice by its scores, of which `neededScores` says what must be there.
 * @throws GrammarFailure when its grammar cannot go on
 */
export async function drawToken(
  choice: Choice,
  scores: Scores,
  options: DrawTokenOptions,
): Promise<DrawnToken> {
  const { grammar } = choice;
  if (!grammar) return note(choice, draw(choice, scores, options));
  try {
    const allowed = await options.stopwatch.time('sample', () => grammar.allowed());
    if (allowed.every((word) => word === 0)) throw new GrammarFailure('the grammar leaves no token to draw');
    return note(choice, draw(choice, scores, options, allowed));
  } catch (error) {
    if (error instanceof GrammarFailure) throw error;
    throw new GrammarFailure(`its grammar cannot go on: ${String(error)}`, { cause: error });
  }
}

function draw(
  { sampler, grammar }: Choice,
  { top, all }: Scores,
  { topLogprobs, stopwatch }: DrawTokenOptions,
  allowed?: Int32Array,
): DrawnToken {
  return stopwatch.time('sample', () => {
    const isOfTop = !grammar && sampler.neededLogits() <= top.tokens.length;
    const token = isOfTop
      ? sampler.sampleTop(top.tokens, top.logits)
      : sampler.sample(wanted(all).logits, allowed);
    grammar?.accept(token);
    if (topLogprobs === undefined) return { token };
    return { token, ...tokenLogprobs({ top, all: wanted(all) }, token, topLogprobs) };
  });
}

function wanted(all: AllScores | undefined): AllScores {
  if (!all) throw new Error('All logits are needed and were not asked for. This is a bug.');
  return all;
}

function note(choice: Choice, drawn: DrawnToken): DrawnToken {
  choice.token = drawn.token;
  choice.history.push(drawn.token);
  choice.drawn++;
  return drawn;
}
