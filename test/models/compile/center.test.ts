import { expect, test } from 'vitest';
import { centerColumns, centerRows } from '../../../src/models/compile/center.js';

test('each row has mean 0', () => {
  const matrix = Float32Array.of(1, 2, 6, 4, 4, -2);
  expect([...centerRows(matrix, 3)]).toEqual([-2, -1, 3, 2, 2, -4]);
  expect([...matrix]).toEqual([-2, -1, 3, 2, 2, -4]);
});

test('each column has mean 0', () => {
  const matrix = Float32Array.of(1, 2, 6, 5, 4, -2);
  expect([...centerColumns(matrix, 3)]).toEqual([-2, -1, 4, 2, 1, -4]);
});
