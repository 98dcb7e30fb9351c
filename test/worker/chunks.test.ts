import { expect, test } from 'vitest';
import { chunks } from '../../src/worker/chunks.js';

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
