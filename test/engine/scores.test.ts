import { expect, it } from 'vitest';
import type { GenerateRequest } from '../../src/engine/request.js';
import { SamplerScratch } from '../../src/engine/sampler.js';
import { topFor } from '../../src/engine/scores.js';
import { createGeneration } from '../../src/engine/sequence.js';
import { generateRequest, greedy } from './support/requests.js';

const vocabularySize = 300;

/** A row that decodes. */
function decoding(fields: Partial<GenerateRequest['sampling']>, more: Partial<GenerateRequest> = {}) {
  const request = generateRequest('a', { sampling: { ...greedy, temperature: 1, ...fields }, ...more });
  const scratch = new SamplerScratch(vocabularySize);
  const generation = createGeneration(request, { contextLength: 100, scratch });
  const [choice] = generation.choices;
  return { sequence: { generation, row: 0, cached: request.prompt.length, choice }, tokens: 1 };
}

const top = (...chunks: ReturnType<typeof decoding>[]) => topFor(chunks, vocabularySize);

it('wants as many of the largest logits as the row needs that needs the most', () => {
  expect(top(decoding({ temperature: 0 }))).toBe(1);
  expect(top(decoding({ topK: 64 }))).toBe(64);
  expect(top(decoding({ topK: 7 }), decoding({ temperature: 0 }), decoding({ topK: 20 }))).toBe(20);
});

it.each([
  ['of more tokens than are selected', { topK: 65 }],
  [
    'of more lowered tokens than are spare',
    { topK: 60, logitBias: [1, 2, 3, 4, 5].map((token) => [token, -1] as const) },
  ],
  ['of all tokens', { topK: -1 }],
])('wants all logits where a row may draw one %s', (_what, sampling) => {
  expect(top(decoding({ temperature: 0 }), decoding(sampling))).toBeUndefined();
});

it('wants all logits for log-probabilities', () => {
  expect(top(decoding({ topK: 7 }, { topLogprobs: 0 }))).toBeUndefined();
});

it('wants all logits once penalties hold for more tokens than are spare, drafts counted in', () => {
  const row = decoding({ topK: 60, frequencyPenalty: 2, temperature: 0.1 });
  expect(topFor([{ ...row, drafts: new Int32Array(4) }], vocabularySize)).toBe(64);
  expect(topFor([{ ...row, drafts: new Int32Array(5) }], vocabularySize)).toBeUndefined();
  let draws = 0;
  while (top(row) !== undefined) {
    const logits = new Float32Array(vocabularySize).fill(0);
    logits[draws] = 50;
    row.sequence.choice!.sampler.sample(logits);
    draws++;
  }
  expect(draws).toBe(5);
});

it('wants no more than there are', () => {
  expect(topFor([decoding({ topK: 30 })], 30)).toBe(30);
  expect(topFor([decoding({ topK: 31 })], 30)).toBeUndefined();
});
