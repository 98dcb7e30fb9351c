import { describe, expect, it } from 'vitest';
import { SaidBefore } from '../../src/engine/said-before.js';

const count = (length: number, from = 0) => Int32Array.from({ length }, (_, at) => from + at);

describe('what was said before', () => {
  it('is each text behind the end of its prompt, the latest last', () => {
    const said = new SaidBefore();
    said.keep('a', Int32Array.of(1, 2, 3, 4), 2);
    said.keep('a', Int32Array.of(5, 6), 1);
    expect([...said.of('a')]).toEqual([1, 2, 3, 4, -1, 5, 6, -1]);
    said.keep('b', count(100), 90);
    expect([...said.of('b')]).toEqual([...count(26, 74), -1]);
  });

  it('is told to its own scope alone', () => {
    const said = new SaidBefore();
    said.keep('a', Int32Array.of(1, 2, 3), 1);
    expect(said.of('b')).toHaveLength(0);
  });

  it('has no prompt that led to nothing', () => {
    const said = new SaidBefore();
    said.keep('a', Int32Array.of(1, 2, 3), 3);
    expect(said.of('a')).toHaveLength(0);
  });

  it('is the latest thousands of tokens, however much is said', () => {
    const said = new SaidBefore();
    for (let text = 0; text < 500; text++) {
      said.keep(
        'a',
        Int32Array.from({ length: 1 + (text % 300) }, () => text),
        0,
      );
      const tokens = said.of('a');
      expect(tokens.length).toBeLessThanOrEqual(16_384);
      expect(tokens.at(-1)).toBe(-1);
      expect(tokens.at(-2)).toBe(text);
      if (text > 150) expect(tokens.length).toBeGreaterThanOrEqual(8_192);
      // What is kept is what was said last, without a gap.
      const texts = [...tokens.filter((token, at) => token >= 0 && token !== tokens[at + 1])];
      expect(texts).toEqual(texts.map((_, at) => text - texts.length + 1 + at));
    }
  });

  it('is the end of a text that is too long', () => {
    const said = new SaidBefore();
    said.keep('a', count(3), 0);
    said.keep('a', count(50_000), 0);
    const tokens = said.of('a');
    expect(tokens.length).toBeGreaterThanOrEqual(8_192);
    expect([...tokens.slice(-4)]).toEqual([49_997, 49_998, 49_999, -1]);
  });

  it('is forgotten of scopes that have said nothing for long', () => {
    const said = new SaidBefore();
    for (let scope = 0; scope < 16; scope++) said.keep(`${scope}`, Int32Array.of(scope), 0);
    said.keep('0', Int32Array.of(7), 0);
    said.keep('16', Int32Array.of(16), 0);
    expect([...said.of('0')]).toEqual([0, -1, 7, -1]);
    expect(said.of('1')).toHaveLength(0);
    for (let scope = 2; scope <= 16; scope++) expect(said.of(`${scope}`)).not.toHaveLength(0);
  });
});
