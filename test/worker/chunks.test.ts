import { expect, test } from 'vitest';
import { chunks, tokensOfChunks } from '../../src/worker/chunks.js';
import { fc } from '../support/property.js';

const document = Int32Array.from({ length: 10 }, (_, index) => index);
const cut = (tokens: Int32Array, options: { size: number; overlap?: number; max?: number }) =>
  [...chunks(tokens, { overlap: 0, max: 1024, ...options })].map((chunk) => [...chunk]);

test('a document that fits is one chunk', () => {
  expect(cut(document, { size: 10, overlap: 5 })).toEqual([[...document]]);
});

test('an empty document is one empty chunk', () => {
  expect(cut(new Int32Array(), { size: 4 })).toEqual([[]]);
});

test('chunks follow each other and the last may be shorter', () => {
  expect(cut(document, { size: 4 })).toEqual([
    [0, 1, 2, 3],
    [4, 5, 6, 7],
    [8, 9],
  ]);
});

test('neighbours share the overlap, and none only repeats the end', () => {
  expect(cut(document, { size: 4, overlap: 1 })).toEqual([
    [0, 1, 2, 3],
    [3, 4, 5, 6],
    [6, 7, 8, 9],
  ]);
});

test('only so many chunks are cut, from the start', () => {
  expect(cut(document, { size: 4, overlap: 2, max: 2 })).toEqual([
    [0, 1, 2, 3],
    [2, 3, 4, 5],
  ]);
});

/**
 * The rule in the contract's words: a document longer than fits is split into chunks; neighbours overlap; at most so
 * many chunks from its start.
 */
function reference(tokens: readonly number[], size: number, overlap: number, max: number): number[][] {
  if (tokens.length <= size) return [[...tokens]];
  const split: number[][] = [[]];
  for (const token of tokens) {
    const last = split.at(-1)!;
    if (last.length < size) last.push(token);
    else split.push([...(overlap === 0 ? [] : last.slice(-overlap)), token]);
  }
  return split.slice(0, max);
}

test('any document is cut as the rule says', () => {
  const cases = fc
    .record({ length: fc.integer({ min: 0, max: 400 }), size: fc.integer({ min: 1, max: 120 }) })
    .chain(({ length, size }) =>
      fc.record({
        tokens: fc.constant(Array.from({ length }, (_, index) => index)),
        size: fc.constant(size),
        overlap: fc.integer({ min: 0, max: Math.min(80, size - 1) }),
        max: fc.integer({ min: 1, max: 30 }),
      }),
    );
  void fc.assert(
    fc.property(cases, ({ tokens, size, overlap, max }) => {
      expect(cut(Int32Array.from(tokens), { size, overlap, max })).toEqual(
        reference(tokens, size, overlap, max),
      );
    }),
    { numRuns: 500 },
  );
});

test('tokens beyond those that chunks can hold change nothing', () => {
  const options = { size: 7, overlap: 3, max: 4 };
  const needed = tokensOfChunks(options);
  const tokens = Int32Array.from({ length: 3 * needed }, (_, index) => index);
  expect(cut(tokens.subarray(0, needed), options)).toEqual(cut(tokens, options));
  expect(cut(tokens.subarray(0, needed - 1), options)).not.toEqual(cut(tokens, options));
});
