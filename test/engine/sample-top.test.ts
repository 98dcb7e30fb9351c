import { expect, it } from 'vitest';
import type { Sampling } from '../../src/engine/request.js';
import { Sampler, SamplerScratch } from '../../src/engine/sampler.js';

const vocabularySize = 300;
/** More are not selected. */
const most = 64;
const plain: Sampling = {
  temperature: 1,
  topP: 1,
  topK: 40,
  minP: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  seed: 1,
  logitBias: [],
};

/** Numbers in [0, 1) without a pattern, the same at every call. */
function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const sampler = (sampling: Partial<Sampling>) =>
  new Sampler({ ...plain, ...sampling }, 0, new SamplerScratch(vocabularySize));

/** The largest logits as a graph gives them: the largest first, of equals the lower token. */
function topOf(logits: Float32Array, count: number): { tokens: Int32Array; logits: Float32Array } {
  const tokens = Int32Array.from(logits.keys())
    .sort((a, b) => logits[b]! - logits[a]! || a - b)
    .subarray(0, count);
  return { tokens, logits: Float32Array.from(tokens, (token) => logits[token]!) };
}

it('draws what all logits give, whatever the settings', () => {
  const random = noise(7);
  const sometimes = (share: number, value: () => number) => (random() < share ? value() : 0);
  let compared = 0;
  for (let seed = 0; seed < 400; seed++) {
    const sampling = {
      seed,
      temperature: seed % 5 === 0 ? 0 : 0.2 + random(),
      topK: 1 + Math.floor(random() * 45),
      topP: random() < 0.5 ? 1 : random(),
      minP: sometimes(0.3, () => random() * 0.2),
      frequencyPenalty: sometimes(0.4, random),
      presencePenalty: sometimes(0.4, random),
      logitBias:
        random() < 0.5
          ? []
          : ([
              [Math.floor(random() * vocabularySize), -5 * random()],
              [2, -100],
            ] as const),
    };
    const whole = sampler(sampling);
    const top = sampler(sampling);
    for (let step = 0; step < 10 && top.neededLogits() <= most; step++) {
      // Few different values, so that many are equal.
      const spread = random() < 0.5 ? 8 : 80;
      const logits = new Float32Array(vocabularySize).map(() => Math.round(random() * spread) / 4);
      const { tokens, logits: largest } = topOf(logits, top.neededLogits());
      expect(top.sampleTop(tokens, largest)).toBe(whole.sample(logits));
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(3000);
});

it.each([
  ['all tokens', { topK: -1 }],
  ['a token that is made likelier', { logitBias: [[5, 1]] as const }],
  ['tokens that are made likelier when they were drawn', { presencePenalty: -0.5 }],
])('needs all logits to draw from %s', (_what, sampling) => {
  expect(sampler(sampling).neededLogits()).toBe(Number.POSITIVE_INFINITY);
});

it.each([
  ['top-k', { topK: 7 }, 7],
  ['the likeliest one', { temperature: 0, topK: 7 }, 1],
  ['as many more as biases lower', { topK: 7, logitBias: [1, 2].map((token) => [token, -1] as const) }, 9],
  ['no more for penalties on what is not drawn yet', { topK: 7, frequencyPenalty: 1 }, 7],
])('needs %s', (_what, sampling, needed) => {
  expect(sampler(sampling).neededLogits()).toBe(needed);
});

it('needs one more for each token that penalties hold for, and for each draw that comes before', () => {
  const drawing = sampler({ topK: 60, frequencyPenalty: 2, temperature: 0.1 });
  const needed: number[] = [];
  for (let draws = 0; draws < 3; draws++) {
    needed.push(drawing.neededLogits());
    const logits = new Float32Array(vocabularySize).fill(0);
    logits[draws] = 50;
    const { tokens, logits: largest } = topOf(logits, needed.at(-1)!);
    drawing.sampleTop(tokens, largest);
  }
  expect(needed).toEqual([60, 61, 62]);
  expect(drawing.neededLogits(5)).toBe(68);
  expect(sampler({ topK: 60 }).neededLogits(5)).toBe(60);
});

it('takes the largest logit when it is greedy, the lower token of two that are equal', () => {
  const greedy = sampler({ temperature: 0, topK: -1, logitBias: [[4, -3]] });
  expect(greedy.neededLogits()).toBe(2);
  expect(greedy.sampleTop(Int32Array.of(4, 7, 9), Float32Array.of(5, 3, 3))).toBe(7);
});
