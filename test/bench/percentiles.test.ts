import { describe, expect, it } from 'vitest';
import { median, percentiles } from '../../bench/load/percentiles.js';

describe('percentiles', () => {
  it('lie between the nearest ranks, in whatever order the values come', () => {
    const values = Array.from({ length: 101 }, (_, index) => index).reverse();

    expect(percentiles(values)).toEqual({ p50: 50, p95: 95, p99: 99 });
    expect(percentiles([20, 10])).toEqual({ p50: 15, p95: 19.5, p99: 19.9 });
  });

  it('sort by size and not as text', () => {
    expect(percentiles([9, 10, 100]).p50).toBe(10);
  });

  it('of one value are that value, and of none are null', () => {
    expect(percentiles([7])).toEqual({ p50: 7, p95: 7, p99: 7 });
    expect(percentiles([])).toEqual({ p50: null, p95: null, p99: null });
  });

  it('have the median in their middle', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeUndefined();
  });
});
