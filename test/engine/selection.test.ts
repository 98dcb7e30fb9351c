import { describe, expect, it } from 'vitest';
import { Random } from '../../src/engine/random.js';
import { type Cutoff, indexOfLargest, indicesOfLargest, massCutoff } from '../../src/engine/selection.js';

/** Indices that a cutoff keeps. */
function keptBy({ threshold, ties }: Cutoff, values: ArrayLike<number>): number[] {
  let tiesLeft = ties;
  return Array.from(values).flatMap((value, index) =>
    value > threshold || (value === threshold && tiesLeft-- > 0) ? [index] : [],
  );
}

/** `count` numbers of few or many different values. */
function numbers(count: number, seed: number): number[] {
  const random = new Random(seed, 0);
  const steps = seed % 2 === 0 ? 10 : 1e9;
  return Array.from({ length: count }, () => Math.floor(random.next() * steps));
}

function sorted(values: readonly number[]): number[] {
  return [...values.keys()].sort((a, b) => values[b]! - values[a]! || a - b);
}

const ascending = (a: number, b: number) => a - b;

describe('selection', () => {
  it('finds the k largest as sorting does', () => {
    for (let seed = 0; seed < 60; seed++) {
      const values = Float32Array.from(numbers(1 + seed * 5, seed));
      const count = 1 + ((seed * 7) % values.length);
      const expected = sorted([...values])
        .slice(0, count)
        .sort(ascending);
      const indices = new Int32Array(values.length);
      indicesOfLargest(values, count, indices);
      expect([...indices.subarray(0, count)]).toEqual(expected);
    }
  });

  it('finds the fewest values of a given sum as sorting does', () => {
    for (let seed = 0; seed < 60; seed++) {
      const values = numbers(1 + seed * 5, seed);
      const total = values.reduce((sum, value) => sum + value, 0);
      const mass = Math.max(1, Math.floor((total * (seed % 10)) / 10));
      let sum = 0;
      const expected = sorted(values).filter((index) => {
        const before = sum;
        sum += values[index]!;
        return before < mass;
      });
      const kept = keptBy(massCutoff(Float64Array.from(values), mass), values);
      expect(kept).toEqual(expected.sort(ascending));
    }
  });

  it('keeps all where the sum is never reached', () => {
    expect(keptBy(massCutoff(Float64Array.of(1, 0, 2), 4), [1, 0, 2])).toEqual([0, 1, 2]);
  });

  it('finds the first of the largest, and none among NaN', () => {
    expect(indexOfLargest(Float32Array.of(1, 5, 2, 5))).toBe(1);
    expect(indexOfLargest(Float32Array.of(Number.NaN, 5))).toBe(1);
    expect(indexOfLargest(new Float32Array(3).fill(Number.NaN))).toBe(-1);
  });
});
