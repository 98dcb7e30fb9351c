import { describe, expect, it } from 'vitest';
import { drawPrompt, drawRanking, drawText } from '../../bench/load/prompts.js';
import { parseRange } from '../../bench/load/range.js';

const options = { seed: 1, words: { min: 50, max: 200 }, maxTokens: { min: 16, max: 128 } };
const countWords = (text: string) => text.split(' ').length;

describe('prompts', () => {
  it('are the same for the same seed and index', () => {
    expect(drawPrompt(3, options)).toEqual(drawPrompt(3, options));
    expect(drawPrompt(3, options)).not.toEqual(drawPrompt(3, { ...options, seed: 2 }));
  });

  it('share no beginning with those of other indexes', () => {
    const beginnings = Array.from({ length: 500 }, (_, index) =>
      drawPrompt(index, options).content.split(' ').slice(0, 4).join(' '),
    );

    expect(new Set(beginnings).size).toBe(500);
  });

  it('spread evenly over the whole of both ranges', () => {
    const prompts = Array.from({ length: 5000 }, (_, index) => drawPrompt(index, options));
    const lengths = prompts.map(({ content }) => countWords(content));
    const limits = prompts.map(({ maxTokens }) => maxTokens);
    const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

    expect([Math.min(...lengths), Math.max(...lengths)]).toEqual([50, 200]);
    expect([Math.min(...limits), Math.max(...limits)]).toEqual([16, 128]);
    expect(mean(lengths)).toBeCloseTo(125, -1);
    expect(mean(limits)).toBeCloseTo(72, -1);
  });

  it('keep their text when only the range of their answers changes', () => {
    const { content } = drawPrompt(3, options);

    expect(drawPrompt(3, { ...options, maxTokens: { min: 64, max: 64 } }).content).toBe(content);
  });

  it('have exactly the fixed number of words', () => {
    expect(countWords(drawText(0, { seed: 1, words: { min: 100, max: 100 } }))).toBe(100);
  });
});

describe('rankings', () => {
  it('have as many documents as drawn, each of the wanted length', () => {
    const words = { min: 20, max: 30 };
    for (let index = 0; index < 50; index++) {
      const { query, documents } = drawRanking(index, { seed: 1, words, documents: { min: 2, max: 5 } });

      expect(query).not.toBe('');
      expect(documents.length).toBeGreaterThanOrEqual(2);
      expect(documents.length).toBeLessThanOrEqual(5);
      for (const document of documents) {
        expect(countWords(document)).toBeGreaterThanOrEqual(20);
        expect(countWords(document)).toBeLessThanOrEqual(30);
      }
    }
  });
});

describe('range', () => {
  it('is read from one number or from two', () => {
    expect(parseRange('64')).toEqual({ min: 64, max: 64 });
    expect(parseRange('16-128')).toEqual({ min: 16, max: 128 });
  });

  it.each(['', '0', '-5', '1.5', '128-16', '1-2-3', 'ten'])('is not read from "%s"', (text) => {
    expect(() => parseRange(text)).toThrow('whole number');
  });
});
