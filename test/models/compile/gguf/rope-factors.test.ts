import { expect, test } from 'vitest';
import { llama3Factors, recognizeLlama3 } from '../../../../src/models/compile/gguf/rope-factors.js';

const rope = { theta: 500_000, headSize: 128 };
const llama31 = {
  factor: 8,
  lowFrequencyFactor: 1,
  highFrequencyFactor: 4,
  originalContextLength: 8192,
};

test('quick frequencies keep their speed, slow ones are divided by the factor, the rest lie between', () => {
  const factors = [...llama3Factors(llama31, rope)];
  expect(factors).toHaveLength(64);
  expect(factors.slice(0, 29)).toEqual(new Array(29).fill(1));
  expect(factors.slice(35)).toEqual(new Array(29).fill(8));
  const between = factors.slice(29, 35);
  expect(between.every((factor, at) => factor > 1 && factor < 8 && factor > (between[at - 1] ?? 1))).toBe(
    true,
  );
});

test('the factors of Llama 3.1 and 3.2 are recognized', () => {
  expect(recognizeLlama3(llama3Factors(llama31, rope), rope)).toEqual(llama31);
  const llama32 = { ...llama31, factor: 32 };
  const small = { theta: 500_000, headSize: 64 };
  expect(recognizeLlama3(llama3Factors(llama32, small), small)).toEqual(llama32);
});

test('other factors are not', () => {
  expect(recognizeLlama3(new Float32Array(64).fill(2), rope)).toBeUndefined();
  expect(recognizeLlama3(llama3Factors(llama31, rope).subarray(1), rope)).toBeUndefined();
});
