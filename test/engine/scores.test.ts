import { expect, it } from 'vitest';
import type { GenerateRequest } from '../../src/engine/request.js';
import { SamplerScratch } from '../../src/engine/sampler.js';
import type { Chunk } from '../../src/engine/scheduler.js';
import { neededScores } from '../../src/engine/scores.js';
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

const needed = (chunk: Chunk) => neededScores(chunk, vocabularySize);

it('is as many of the largest logits as the draw needs', () => {
  expect(needed(decoding({ temperature: 0 }))).toEqual({ top: 1, whole: false });
  expect(needed(decoding({ topK: 64 }))).toEqual({ top: 64, whole: false });
});

it('is nothing while a prompt is read or a row stands idle', () => {
  const row = decoding({ topK: -1 });
  expect(needed({ ...row, tokens: 0 })).toEqual({ top: 1, whole: false });
  expect(needed({ ...row, sequence: { ...row.sequence, cached: 0 } })).toEqual({ top: 1, whole: false });
});

it.each([
  ['of more tokens than are selected', { topK: 65 }],
  [
    'of more lowered tokens than are spare',
    { topK: 60, logitBias: [1, 2, 3, 4, 5].map((token) => [token, -1] as const) },
  ],
  ['of all tokens', { topK: -1 }],
])('is all logits where a row may draw one %s', (_what, sampling) => {
  expect(needed(decoding(sampling))).toEqual({ top: 1, whole: true });
});

it('is all logits for log-probabilities, with as many of the largest as are told', () => {
  expect(needed(decoding({ topK: 7 }, { topLogprobs: 0 }))).toEqual({ top: 7, whole: true });
  expect(needed(decoding({ topK: 7 }, { topLogprobs: 20 }))).toEqual({ top: 20, whole: true });
  expect(needed(decoding({ topK: -1 }, { topLogprobs: 5 }))).toEqual({ top: 5, whole: true });
  expect(neededScores(decoding({ topK: 1 }, { topLogprobs: 20 }), 10)).toEqual({ top: 10, whole: true });
});

it('is all logits once penalties hold for more tokens than are spare, drafts counted in', () => {
  const row = decoding({ topK: 60, frequencyPenalty: 2, temperature: 0.1 });
  expect(needed({ ...row, drafts: new Int32Array(4) })).toEqual({ top: 64, whole: false });
  expect(needed({ ...row, drafts: new Int32Array(5) })).toEqual({ top: 1, whole: true });
  let draws = 0;
  while (!needed(row).whole) {
    const logits = new Float32Array(vocabularySize).fill(0);
    logits[draws] = 50;
    row.sequence.choice!.sampler.sample(logits);
    draws++;
  }
  expect(draws).toBe(5);
});

it('is no more than there are', () => {
  expect(neededScores(decoding({ topK: 30 }), 30)).toEqual({ top: 30, whole: false });
  expect(neededScores(decoding({ topK: 31 }), 30)).toEqual({ top: 1, whole: true });
});
