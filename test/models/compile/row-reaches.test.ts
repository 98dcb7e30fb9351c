import { expect, test } from 'vitest';
import { RowReaches } from '../../../src/models/compile/row-reaches.js';

const rows = { value: 'rows', count: 'count' };

test('no layer has a reach until its rows are measured, and others keep none', () => {
  const reaches = new RowReaches();
  const [first, second] = [reaches.rows('first', rows), reaches.rows('second', rows)];
  expect(first).toMatchObject(rows);
  expect(first.reach!()).toBeUndefined();
  reaches.set(new Map([['first', Float32Array.of(5)]]));
  expect(first.reach!()).toBeCloseTo(4, 5);
  expect(second.reach!()).toBeUndefined();
});

test('it knows what holds the largest magnitudes of those layers that are rounded by them', () => {
  const reaches = new RowReaches();
  reaches.rows('first', rows).onLargest!('largest_1');
  reaches.rows('second', rows);
  reaches.rows('third', rows).onLargest!('largest_3');
  expect([...reaches.largest]).toEqual([
    ['first', 'largest_1'],
    ['third', 'largest_3'],
  ]);
});

test.each<[string, ArrayLike<number>, number | undefined]>([
  ['reach to 0.8 of the largest where they are alike', [2, 3, 1, 2, 2.5], 2.4],
  ['have no common reach where one is far larger than most', [2, 3, 1, 2, 600], undefined],
  ['have none where they are all zero', [0, 0, 0], undefined],
  ['have none where there are none', [], undefined],
])('rows %s', (_, measured, expected) => {
  const reaches = new RowReaches();
  reaches.set(new Map([['layer', Float32Array.from(measured)]]));
  const reach = reaches.rows('layer', rows).reach!();
  if (expected === undefined) expect(reach).toBeUndefined();
  else expect(reach).toBeCloseTo(expected, 5);
});
