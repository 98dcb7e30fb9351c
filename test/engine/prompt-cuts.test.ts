import { expect, test } from 'vitest';
import { PromptCuts } from '../../src/engine/prompt-cuts.js';

const cuts = new PromptCuts(128, 32);

/** The pieces in which a prompt is read. */
function pieces(length: number): number[] {
  const found: number[] = [];
  for (let position = 0; position < length; ) {
    const next = cuts.next(length, position);
    found.push(next - position);
    position = next;
  }
  return found;
}

test.each([
  [1, [1]],
  [128, [128]],
  [129, [129]],
  [159, [159]],
  [160, [128, 32]],
  [256, [128, 128]],
  [287, [128, 159]],
  [288, [128, 128, 32]],
])('a prompt of %i tokens is read in pieces of %j', (length, expected) => {
  expect(pieces(length)).toEqual(expected);
});

test('the last cut is where the last piece begins', () => {
  for (let length = 1; length < 1000; length++) {
    expect(cuts.last(length)).toBe(length - pieces(length).at(-1)!);
  }
});
