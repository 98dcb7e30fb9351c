import { describe, expect, it } from 'vitest';
import { TokenHistory } from '../../src/engine/token-history.js';

/** The draft behind a prompt and what was drawn after it. */
function draft(
  prompt: readonly number[],
  { drawn = [], most = 7 }: { drawn?: readonly number[]; most?: number } = {},
) {
  const history = new TokenHistory(Int32Array.from(prompt));
  for (const token of drawn) history.push(token);
  return [...history.draft(most)];
}

describe('a draft', () => {
  it('is what came after an earlier place that ends alike, as many tokens as agree', () => {
    expect(draft([1, 2, 3, 4, 5, 6, 1, 2])).toEqual([3, 4]);
    expect(draft([1, 2, 3, 4, 5, 6, 1, 2, 3])).toEqual([4, 5, 6]);
  });

  it('does not follow from one token', () => {
    expect(draft([1, 2, 3, 2])).toEqual([]);
    expect(draft([5])).toEqual([]);
    expect(draft([5, 5])).toEqual([]);
  });

  it('agrees in more tokens rather than being later', () => {
    expect(draft([1, 2, 3, 10, 2, 3, 20, 1, 2, 3])).toEqual([10, 2, 3]);
  });

  it('is the latest of those that agree in as many', () => {
    expect(draft([2, 3, 10, 9, 2, 3, 20, 8, 2, 3])).toEqual([20, 8]);
  });

  it('goes on as the text between goes on', () => {
    expect(draft([4, 8, 4, 8, 4, 8])).toEqual([4, 8, 4, 8]);
    expect(draft([6, 6, 6, 6])).toEqual([6, 6, 6]);
  });

  it('has no more tokens than are wanted', () => {
    const text = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8];
    expect(draft(text, { most: 3 })).toEqual([9, 1, 2]);
    expect(draft(text, { most: 1 })).toEqual([]);
    expect(draft(text, { most: 0 })).toEqual([]);
    expect(draft(text)).toEqual([9, 1, 2, 3, 4, 5, 6]);
  });

  it('follows from the prompt and from what was drawn, however much that is', () => {
    const prompt = Array.from({ length: 100 }, (_, at) => at);
    expect(draft(prompt, { drawn: [40, 41, 42] })).toEqual([43, 44, 45]);
    const drawn = Array.from({ length: 1_000 }, (_, at) => 200 + at);
    expect(draft(prompt, { drawn: [...drawn, 700, 701] })).toEqual([702, 703]);
  });

  it('comes from another text that agrees in more tokens, and ends where that does', () => {
    const others = (...texts: number[][]) => Int32Array.from(texts.flatMap((text) => [...text, -1]));
    const prompt = Int32Array.of(1, 2, 3, 10, 11, 12, 1, 2, 3);
    const draftFrom = (...texts: number[][]) => [...new TokenHistory(prompt).draft(7, others(...texts))];
    expect(draftFrom()).toEqual([10, 11, 12]);
    expect(draftFrom([9, 1, 2, 3, 20, 21])).toEqual([10, 11, 12]);
    expect(draftFrom([12, 1, 2, 3, 20, 21, 22, 23, 24])).toEqual([20, 21, 22, 23]);
    expect(draftFrom([12, 1, 2, 3, 20, 21, 22, 23, 24], [12, 1, 2, 3, 30])).toEqual([30]);
    expect(draftFrom([12, 1, 2, 3])).toEqual([10, 11, 12]);
    expect(draftFrom([11, 12, 1], [2, 3, 40, 41])).toEqual([10, 11, 12]);
  });

  it('does not follow from two tokens of another text', () => {
    const history = new TokenHistory(Int32Array.of(7, 1, 2));
    expect([...history.draft(7, Int32Array.of(8, 1, 2, 3, 4, -1))]).toEqual([]);
    expect([...history.draft(7, Int32Array.of(7, 1, 2, 3, 4, -1))]).toEqual([3, 4]);
  });

  it('has no more tokens of another text than are wanted', () => {
    const text = Array.from({ length: 30 }, (_, at) => at);
    const history = new TokenHistory(Int32Array.from(text.slice(0, 20)));
    const others = Int32Array.from([...text, -1]);
    expect([...history.draft(4, others)]).toEqual([20, 21, 22, 23]);
    expect([...history.draft(2, others)]).toEqual([]);
    expect([...history.draft(0, others)]).toEqual([]);
  });

  it('leaves the prompt as it is', () => {
    const prompt = Int32Array.of(1, 2);
    const histories = [new TokenHistory(prompt), new TokenHistory(prompt)];
    for (const [index, history] of histories.entries()) history.push(index);
    expect([...prompt]).toEqual([1, 2]);
  });
});
