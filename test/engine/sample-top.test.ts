import { expect, it } from 'vitest';
import type { Sampling } from '../../src/engine/request.js';
import { Sampler, SamplerScratch } from '../../src/engine/sampler.js';

const vocabularySize = 300;
const count = 64;
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
function topOf(logits: Float32Array): { tokens: Int32Array; logits: Float32Array } {
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
    for (let step = 0; step < 10 && top.isDecidedBy(count); step++) {
      // Few different values, so that many are equal.
      const spread = random() < 0.5 ? 8 : 80;
      const logits = new Float32Array(vocabularySize).map(() => Math.round(random() * spread) / 4);
      const { tokens, logits: largest } = topOf(logits);
      expect(top.sampleTop(tokens, largest)).toBe(whole.sample(logits));
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(3000);
});

it.each([
  ['all tokens', { topK: -1 }],
  ['more tokens than there are', { topK: 65 }],
  ['a token that is made likelier', { logitBias: [[5, 1]] as const }],
  ['tokens that are made likelier when they were drawn', { presencePenalty: -0.5 }],
  [
    'more lowered tokens than are spare',
    { topK: 60, logitBias: [1, 2, 3, 4, 5].map((token) => [token, -1] as const) },
  ],
])('wants all logits to draw from %s', (_what, sampling) => {
  expect(sampler(sampling).isDecidedBy(count)).toBe(false);
});

it('wants all logits once penalties hold for more tokens than are spare', () => {
  const drawing = sampler({ topK: 60, frequencyPenalty: 2, temperature: 0.1 });
  let draws = 0;
  while (drawing.isDecidedBy(count)) {
    const logits = new Float32Array(vocabularySize).fill(0);
    logits[draws] = 50;
    const { tokens, logits: largest } = topOf(logits);
    drawing.sampleTop(tokens, largest);
    draws++;
  }
  expect(draws).toBe(5);
});

it('takes the largest logit when it is greedy, the lower token of two that are equal', () => {
  const greedy = sampler({ temperature: 0, topK: -1, logitBias: [[4, -3]] });
  expect(greedy.isDecidedBy(count)).toBe(true);
  expect(greedy.sampleTop(Int32Array.of(4, 7, 9), Float32Array.of(5, 3, 3))).toBe(7);
});
