import { expect, test } from 'vitest';
import { quantizeChannels } from '../../../src/models/compile/quantize.js';

test('each output is rounded by its own largest magnitude, and the matrix is transposed', () => {
  const weight = Float32Array.of(1, -2, 0.5, 0.1, 0.2, -0.4);
  const { values, scales } = quantizeChannels(weight, 2, 3);
  expect([...values]).toEqual([64, 32, -127, 64, 32, -127]);
  expect([...scales]).toEqual([2 / 127, 0.4 / 127].map(Math.fround));
});

test('an output of zeros stays zero', () => {
  const { values, scales } = quantizeChannels(Float32Array.of(0, 0, 1, 2), 2, 2);
  expect([...values]).toEqual([0, 64, 0, 127]);
  expect(scales[0]).toBe(0);
});

test('no weight moves by more than half a step, in matrices larger than a tile', () => {
  const [outputs, inputs] = [130, 70];
  const weight = Float32Array.from({ length: outputs * inputs }, (_, at) => Math.sin(at * at));
  const { values, scales } = quantizeChannels(weight, outputs, inputs);
  for (let o = 0; o < outputs; o++) {
    for (let i = 0; i < inputs; i++) {
      const error = Math.abs(values[i * outputs + o]! * scales[o]! - weight[o * inputs + i]!);
      expect(error).toBeLessThanOrEqual(scales[o]! * 0.5001);
    }
  }
});
