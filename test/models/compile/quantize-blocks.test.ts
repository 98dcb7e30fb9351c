import { expect, test } from 'vitest';
import { blockSize, quantizeTo4Bits, quantizeTo8Bits } from '../../../src/models/compile/quantize-blocks.js';

const [outputs, inputs] = [6, 3 * blockSize];
const blocks = inputs / blockSize;

/** Numbers without a pattern, about 1 in size. */
function noise(length: number): Float32Array {
  return Float32Array.from({ length }, (_, at) => 2 * Math.sin((at + 1) * (at + 3) * 0.7));
}

/** What a matrix of 4 bits stands for. */
function valuesOf4(weight: Float32Array): Float32Array {
  const { codes, scales, offsets } = quantizeTo4Bits(weight, outputs, inputs);
  return weight.map((_, at) => {
    const block = Math.floor(at / blockSize);
    const code = (codes[at >> 1]! >> (at & 1 ? 4 : 0)) & 15;
    const offset = offsets[(block % blocks) * outputs + Math.floor(block / blocks)]!;
    return (code - 8) * scales[block]! + offset;
  });
}

/** The squares of what differs, summed, to those of the weights. */
function shareOfError(weight: Float32Array, values: Float32Array): number {
  const squares = (of: (at: number) => number) => weight.reduce((sum, _, at) => sum + of(at) ** 2, 0);
  return squares((at) => weight[at]! - values[at]!) / squares((at) => weight[at]!);
}

test('weights that are 16 evenly spaced values in each block come out as they are', () => {
  const weight = Float32Array.from({ length: outputs * inputs }, (_, at) => {
    const block = Math.floor(at / blockSize);
    return 0.01 * (block + 1) * ((at * 7) % 16) - 0.03 * block - 0.0123;
  });
  const { error } = quantizeTo4Bits(weight, outputs, inputs);
  expect(error).toBeLessThan(1e-12);
  expect(shareOfError(weight, valuesOf4(weight))).toBeLessThan(1e-12);
});

test('the error that is told is that of the values', () => {
  const weight = noise(outputs * inputs);
  const { error } = quantizeTo4Bits(weight, outputs, inputs);
  expect(error).toBeCloseTo(shareOfError(weight, valuesOf4(weight)), 6);
  // 16 values over the range of numbers that are spread evenly.
  expect(error).toBeLessThan(0.006);
});

test('weights that crowd around a middle are rounded finer than the range of their blocks suggests', () => {
  const weight = noise(outputs * inputs).map((value) => value ** 3);
  const byRange = weight.map((value, at) => {
    const block = weight.subarray(at - (at % blockSize), at - (at % blockSize) + blockSize);
    const [low, high] = [Math.min(...block), Math.max(...block)];
    return low + (Math.round(((value - low) * 15) / (high - low)) * (high - low)) / 15;
  });
  expect(shareOfError(weight, valuesOf4(weight))).toBeLessThan(0.97 * shareOfError(weight, byRange));
});

test('a block of equal weights, zeros too, comes out as it is', () => {
  const weight = new Float32Array(outputs * inputs).fill(0.25, blockSize);
  expect([...valuesOf4(weight)]).toEqual([...weight]);
  expect(quantizeTo4Bits(new Float32Array(outputs * inputs), outputs, inputs).error).toBe(0);
});

test('8 bits are within half a step of each weight', () => {
  const weight = noise(outputs * inputs);
  weight.fill(0, 0, blockSize);
  const { codes, scales } = quantizeTo8Bits(weight);
  for (const [at, value] of weight.entries()) {
    const scale = scales[Math.floor(at / blockSize)]!;
    expect(Math.abs((codes[at]! - 128) * scale - value)).toBeLessThanOrEqual(scale * 0.5001);
  }
});
