import { describe, expect, test } from 'vitest';
import { textPieces } from '../../src/worker/text-pieces.js';
import { fc } from '../support/property.js';
import { fixtureTokenizer } from './support/fixture-model.js';

const cut = (text: string, size: number) => [...textPieces(text, size)];

test('a text that fits is one piece', () => {
  expect(cut('mill race', 9)).toEqual(['mill race']);
  expect(cut('', 9)).toEqual(['']);
});

test('cuts fall before the last space that fits', () => {
  expect(cut('mill race wheel', 8)).toEqual(['mill', ' race', ' wheel']);
  expect(cut('mill race wheel', 9)).toEqual(['mill race', ' wheel']);
});

test('spaces in a row stay together', () => {
  expect(cut('mill    race', 8)).toEqual(['mill', '    race']);
});

test('lines are cut where there is no space', () => {
  expect(cut('水車\n石臼\n水路', 6)).toEqual(['水車\n石臼', '\n水路']);
});

test('a word without an end is cut between characters, never within one', () => {
  expect(cut('millrace', 3)).toEqual(['mil', 'lra', 'ce']);
  expect(cut('a🌊🌊🌊', 4)).toEqual(['a🌊', '🌊🌊']);
});

test('pieces are the text, none longer than asked', () => {
  void fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', 'b', ' ', ' ', '\n', '水', '🌊', 'e\u0301'), maxLength: 80 }),
      fc.integer({ min: 2, max: 20 }),
      (text, size) => {
        const pieces = cut(text, size);
        expect(pieces.join('')).toBe(text);
        for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(size);
      },
    ),
  );
});

describe.each(['encoder/bert-cross-encoder', 'encoder/xlm-roberta-cross-encoder'] as const)('%s', (model) => {
  const tokenizer = fixtureTokenizer(model);
  const words = [
    'mill',
    'race',
    'don’t',
    'Berlin,',
    '(1847)',
    'weiß',
    '水車',
    'e\u0301te\u0301',
    '👩‍👩‍👧',
    'שלום',
    '…',
  ];
  const gaps = [' ', ' ', '  ', ' \n', '\t '];

  test('the tokens of pieces, end to end, are those of the whole', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...words), fc.constantFrom(...gaps)), { maxLength: 40 }),
        fc.integer({ min: 24, max: 60 }),
        async (parts, size) => {
          const text = parts.map(([word, gap]) => word + gap).join('');
          const pieces = await tokenizer.encodeBatch(cut(text, size));
          expect(pieces.flatMap((tokens) => [...tokens])).toEqual([...(await tokenizer.encode(text))]);
        },
      ),
      { numRuns: 60 },
    );
  });
});
