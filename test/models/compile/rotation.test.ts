import { expect, test } from 'vitest';
import { Rotation } from '../../../src/models/compile/rotation.js';

function identity(size: number): Float32Array {
  return Float32Array.from({ length: size * size }, (_, at) => (at % (size + 1) === 0 ? 1 : 0));
}

test.each([1, 2, 16, 3, 12, 72])('a rotation of %i coordinates is orthogonal', (size) => {
  const matrix = identity(size);
  new Rotation(size).apply(matrix);
  for (let a = 0; a < size; a++) {
    for (let b = 0; b < size; b++) {
      let dot = 0;
      for (let i = 0; i < size; i++) dot += matrix[a * size + i]! * matrix[b * size + i]!;
      expect(dot).toBeCloseTo(a === b ? 1 : 0, 5);
    }
  }
});

test('rotating the columns multiplies by the transpose', () => {
  const size = 12;
  const rotation = new Rotation(size);
  const matrix = identity(size);
  rotation.apply(matrix);
  const columns = identity(size);
  rotation.apply(columns, size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) expect(columns[i * size + j]).toBeCloseTo(matrix[j * size + i]!, 6);
  }
});

test('a spike is spread over every coordinate', () => {
  const size = 576;
  const row = new Float32Array(size);
  row[100] = 1;
  new Rotation(size).apply(row);
  const largest = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  expect(largest).toBeLessThan(2 / Math.sqrt(size));
});

test('a constant row is not gathered into a spike', () => {
  const size = 576;
  const row = new Float32Array(size).fill(1);
  new Rotation(size).apply(row);
  const largest = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  expect(largest).toBeLessThan(5);
});
