import { describe, expect, it } from 'vitest';
import { Random } from '../../src/engine/random.js';
import type { Sampling } from '../../src/engine/request.js';
import { Sampler, SamplerScratch } from '../../src/engine/sampler.js';
import { greedy } from './support/requests.js';

const vocabulary = 40;
const scratch = new SamplerScratch(vocabulary);

/** Logits spread over about 8, with some exact ties. */
function logitsOf(seed: number): Float32Array {
  const random = new Random(seed, 99);
  return Float32Array.from({ length: vocabulary }, () => Math.round(random.next() * 80) / 10 - 2);
}

/** The distribution a draw must follow, by sorting: the plain reading of the order of the steps. */
function reference(logits: Float32Array, sampling: Sampling, drawn: readonly number[] = []): number[] {
  const adjusted = Array.from(logits);
  for (const [token, bias] of sampling.logitBias) adjusted[token]! += bias;
  for (const token of new Set(drawn)) {
    const count = drawn.filter((other) => other === token).length;
    adjusted[token]! -= count * sampling.frequencyPenalty + sampling.presencePenalty;
  }
  const order = [...adjusted.keys()].sort((a, b) => adjusted[b]! - adjusted[a]! || a - b);
  let kept = sampling.topK > 0 ? order.slice(0, sampling.topK) : order;
  const weigh = (token: number) => Math.exp((adjusted[token]! - adjusted[order[0]!]!) / sampling.temperature);
  const total = kept.reduce((sum, token) => sum + weigh(token), 0);
  if (sampling.topP < 1) {
    let mass = 0;
    kept = kept.filter((token) => {
      const before = mass;
      mass += weigh(token);
      return before < sampling.topP * total;
    });
  }
  kept = kept.filter((token) => weigh(token) >= sampling.minP);
  const left = kept.reduce((sum, token) => sum + weigh(token), 0);
  return Array.from({ length: vocabulary }, (_, token) => (kept.includes(token) ? weigh(token) / left : 0));
}

/** Draws many times, each with a generator of its own, and compares the counts with the expected distribution. */
function expectDistribution(logits: Float32Array, sampling: Sampling, expected: readonly number[]) {
  const draws = 6000;
  const counts = new Array<number>(vocabulary).fill(0);
  for (let seed = 0; seed < draws; seed++) {
    counts[new Sampler({ ...sampling, seed }, 0, scratch).sample(logits)]!++;
  }
  let chiSquare = 0;
  for (const [token, share] of expected.entries()) {
    if (share === 0) expect(counts[token], `token ${token} is cut off`).toBe(0);
    else chiSquare += (counts[token]! - share * draws) ** 2 / (share * draws);
  }
  const freedom = expected.filter((share) => share > 0).length - 1;
  // More than five standard deviations above the mean of chi-square.
  expect(chiSquare).toBeLessThan(freedom + 5 * Math.sqrt(2 * freedom) + 5);
}

describe('the distribution of draws', () => {
  const cases: Record<string, Partial<Sampling>> = {
    'at temperature 1': {},
    'at a low temperature': { temperature: 0.4 },
    'at a high temperature': { temperature: 2 },
    'with top-k': { topK: 7 },
    'with a top-k beyond the vocabulary': { topK: 1000 },
    'with top-p': { topP: 0.8 },
    'with a top-p that only the likeliest meets': { topP: 0.01 },
    'with min-p': { minP: 0.1 },
    'with top-k, top-p and min-p together': { topK: 12, topP: 0.9, minP: 0.08, temperature: 1.3 },
    'with bias': {
      logitBias: [
        [3, 4],
        [5, -100],
      ],
      topK: 20,
    },
  };
  for (const [title, fields] of Object.entries(cases)) {
    it(`${title} is that of a plain computation`, () => {
      const sampling = { ...greedy, temperature: 1, ...fields };
      for (const seed of [1, 2]) {
        const logits = logitsOf(seed);
        expectDistribution(logits, sampling, reference(logits, sampling));
      }
    });
  }
});

describe('cutoffs', () => {
  it('keep exactly the tokens of a plain computation, over many settings', () => {
    for (let seed = 0; seed < 200; seed++) {
      const random = new Random(seed, 5);
      const sampling: Sampling = {
        ...greedy,
        temperature: 0.3 + 3 * random.next(),
        topK: random.next() < 0.4 ? -1 : 1 + Math.floor(random.next() * 39),
        topP: random.next() < 0.3 ? 1 : 0.05 + 0.9 * random.next(),
        minP: random.next() < 0.5 ? 0 : random.next() * 0.5,
      };
      const logits = logitsOf(seed);
      const expected = reference(logits, sampling);
      const drawn = new Set<number>();
      for (let draw = 0; draw < 300; draw++) {
        drawn.add(new Sampler({ ...sampling, seed: draw }, seed, scratch).sample(logits));
      }
      for (const token of drawn) expect(expected[token], `seed ${seed}, token ${token}`).toBeGreaterThan(0);
      for (const [token, share] of expected.entries()) {
        if (share > 0.06) expect(drawn.has(token), `seed ${seed}, token ${token}`).toBe(true);
      }
    }
  });

  it('tell equal logits apart by their index', () => {
    const logits = new Float32Array(vocabulary).fill(1);
    const drawn = (fields: Partial<Sampling>) => {
      const tokens = new Set<number>();
      for (let seed = 0; seed < 400; seed++) {
        tokens.add(new Sampler({ ...greedy, temperature: 1, ...fields, seed }, 0, scratch).sample(logits));
      }
      return [...tokens].sort((a, b) => a - b);
    };
    expect(drawn({ topK: 3 })).toEqual([0, 1, 2]);
    expect(drawn({ topP: 0.1 })).toEqual([0, 1, 2, 3]);
  });
});

describe('greedy', () => {
  it('takes the largest logit, the first of equals', () => {
    const logits = logitsOf(1).fill(9, 17, 19);
    expect(new Sampler(greedy, 0, scratch).sample(logits)).toBe(17);
  });

  it('heeds bias', () => {
    const sampling: Sampling = { ...greedy, logitBias: [[30, 50]] };
    expect(new Sampler(sampling, 0, scratch).sample(logitsOf(1))).toBe(30);
  });

  it('leaves top-k, top-p and the seed without effect', () => {
    const sampling = { ...greedy, topK: 2, topP: 0.5, minP: 0.5, seed: 9 };
    const logits = logitsOf(4);
    expect(new Sampler(sampling, 3, scratch).sample(logits)).toBe(logits.indexOf(Math.max(...logits)));
  });
});

describe('penalties', () => {
  it('grow with each time a token was drawn, or weigh once', () => {
    const logits = new Float32Array(vocabulary).fill(-50);
    logits.set([3, 2, 1.2]);
    const drawn = (fields: Partial<Sampling>) => {
      const sampler = new Sampler({ ...greedy, ...fields }, 0, scratch);
      return Array.from({ length: 7 }, () => sampler.sample(logits));
    };
    // 3, 2.5, 2 (equal to the second: the first of equals), then 1.5 against 2, and so on.
    expect(drawn({ frequencyPenalty: 0.5 })).toEqual([0, 0, 0, 1, 0, 1, 2]);
    // 3 falls to 1.5 once; 2 falls to 0.5; 1.2 to -0.3.
    expect(drawn({ presencePenalty: 1.5 })).toEqual([0, 1, 0, 0, 0, 0, 0]);
    expect(drawn({})).toEqual([0, 0, 0, 0, 0, 0, 0]);
  });

  it('are of one choice, not of the request', () => {
    const logits = logitsOf(1);
    const sampling = { ...greedy, presencePenalty: 2 };
    const first = new Sampler(sampling, 0, scratch);
    expect(new Sampler(sampling, 1, scratch).sample(logits)).toBe(first.sample(logits));
  });
});

describe('a sampler', () => {
  it('leaves the logits as they were', () => {
    const logits = logitsOf(3);
    const before = logits.slice();
    const sampling: Sampling = {
      ...greedy,
      temperature: 1,
      frequencyPenalty: 0.7,
      logitBias: [
        [1, 0.1],
        [1, 0.2],
        [2, -0.3],
        [99, 5],
      ],
    };
    const sampler = new Sampler(sampling, 0, scratch);
    for (let draw = 0; draw < 20; draw++) sampler.sample(logits);
    expect(logits).toEqual(before);
  });

  it('draws differently for each choice of a request', () => {
    const texts = [0, 1, 2].map((choice) => {
      const sampler = new Sampler({ ...greedy, temperature: 1.5, seed: 1 }, choice, scratch);
      return Array.from({ length: 12 }, (_, step) => sampler.sample(logitsOf(step))).join();
    });
    expect(new Set(texts).size).toBe(3);
  });
});
