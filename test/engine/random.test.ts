import { describe, expect, it } from 'vitest';
import { Random } from '../../src/engine/random.js';

const draw = (random: Random, count: number) => Array.from({ length: count }, () => random.next());

describe('Random', () => {
  it('repeats itself for the same seed and stream', () => {
    expect(draw(new Random(7, 2), 100)).toEqual(draw(new Random(7, 2), 100));
  });

  it('differs between seeds and streams, also those far apart or negative', () => {
    const pairs = [
      [0, 0],
      [0, 1],
      [1, 0],
      [-1, 0],
      [2 ** 32, 0],
      [2 ** 53 - 1, 0],
    ] as const;
    const first = pairs.map(([seed, stream]) => new Random(seed, stream).next());
    expect(new Set(first).size).toBe(pairs.length);
  });

  it('is uniform in [0, 1): chi-square over 64 bins, also over the first draws of neighbouring seeds', () => {
    const random = new Random(1, 0);
    const samples = [
      Array.from({ length: 64_000 }, () => random.next()),
      Array.from({ length: 64_000 }, (_, seed) => new Random(seed, 0).next()),
    ];
    for (const sample of samples) {
      const bins = new Array(64).fill(0);
      for (const value of sample) bins[Math.floor(value * 64)]++;
      const chiSquare = bins.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
      // 63 degrees of freedom: above 113 in one case of ten thousand.
      expect(chiSquare).toBeLessThan(113);
    }
  });
});
