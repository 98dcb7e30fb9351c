import { expect, test } from 'vitest';
import { AgreementSum, predictionOf } from '../../../src/cli/model-evaluate/agreement.js';

/** Logits of a distribution, with an offset that changes nothing. */
const logitsOf = (...shares: number[]) => predictionOf(Float32Array.from(shares, (p) => Math.log(p) + 3));

test('a prediction is the logarithms of probabilities that sum to 1', () => {
  const prediction = predictionOf(Float32Array.of(100, 101, 99, -500));
  expect(prediction.reduce((sum, logarithm) => sum + Math.exp(logarithm), 0)).toBeCloseTo(1, 12);
  expect(prediction[1]! - prediction[0]!).toBeCloseTo(1, 12);
});

test('perplexity, agreement and divergence are those of their definitions', () => {
  const sum = new AgreementSum();
  sum.add(logitsOf(0.5, 0.25, 0.25), logitsOf(0.5, 0.25, 0.25), 0);
  sum.add(logitsOf(0.2, 0.7, 0.1), logitsOf(0.6, 0.3, 0.1), 2);
  const { tokens, perplexity, top1, divergence } = sum.result();
  expect(tokens).toBe(2);
  expect(perplexity).toBeCloseTo(1 / Math.sqrt(0.5 * 0.1), 5);
  expect(top1).toBe(0.5);
  expect(divergence).toBeCloseTo((0.6 * Math.log(0.6 / 0.2) + 0.3 * Math.log(0.3 / 0.7)) / 2, 5);
});
