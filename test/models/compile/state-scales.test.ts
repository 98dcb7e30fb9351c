import { describe, expect, test } from 'vitest';
import type { DecoderConfig } from '../../../src/models/compile/checkpoint.js';
import type { StateRange } from '../../../src/models/compile/measure-states.js';
import { StateScales } from '../../../src/models/compile/state-scales.js';
import { smallDecoder } from './small-decoder.js';

const config = { ...smallDecoder, layers: 2 };
const { heads, kvHeads, headSize } = config;
const group = heads / kvHeads;

/** Magnitudes without a pattern, from small ones to ones that are `spread` times as large. */
function magnitudes(length: number, seed: number, spread = 100): Float32Array {
  return Float32Array.from(
    { length },
    (_, at) => 0.05 * spread ** (0.5 + 0.5 * Math.sin((at + 1) * (at + seed))),
  );
}

const range = (seed: number, changes: Partial<StateRange> = {}): StateRange => ({
  key: magnitudes(kvHeads * headSize, seed + 1),
  value: magnitudes(kvHeads * headSize, seed + 2),
  mixed: magnitudes(heads * headSize, seed + 3),
  ...changes,
});

function scalesOf(ranges: readonly StateRange[], changes: Partial<DecoderConfig> = {}) {
  const scales = new StateScales({ ...config, layers: ranges.length, ...changes });
  scales.set(ranges);
  return ranges.map((_, layer) => scales.layer(layer));
}

/** The element of the keys that an element of the queries meets. */
const keyOf = (query: number) =>
  Math.floor(Math.floor(query / headSize) / group) * headSize + (query % headSize);

const largest = (numbers: Float32Array, gains: Float32Array) =>
  numbers.reduce((most, number, at) => Math.max(most, number * gains[at]!), 0);

const zeros = (length: number) => new Float32Array(length);
const nothing: StateRange = {
  key: zeros(kvHeads * headSize),
  value: zeros(kvHeads * headSize),
  mixed: zeros(heads * headSize),
};
const partlyZero = range(5);
partlyZero.key.fill(0, 3, 9);

test('scales are 1 until they are set', () => {
  const { query, key, ...rest } = new StateScales(config).layer(1);
  expect(query).toEqual(new Float32Array(heads * headSize).fill(1));
  expect(key).toEqual(new Float32Array(kvHeads * headSize).fill(1));
  expect(rest).toEqual({ value: 1, mixedReach: 1 });
});

describe.each([
  ['each head on its own', false],
  ['all heads behind one norm', true],
])('of %s', (_, queryKeyNorm) => {
  const of = (...ranges: StateRange[]) => scalesOf(ranges, { queryKeyNorm });

  test.each([
    ['numbers of all sizes', range(3)],
    ['elements that are always 0', partlyZero],
    ['nothing but zeros', nothing],
  ])('the product of a scaled query and a scaled key is the product: %s', (__, measured) => {
    const [{ query, key }] = of(measured) as [ReturnType<StateScales['layer']>];
    for (const [at, gain] of query.entries()) expect(gain * key[keyOf(at)]!).toBeCloseTo(1, 5);
  });

  test('keys reach 127, and not more', () => {
    const measured = range(3);
    const [{ key }] = of(measured) as [ReturnType<StateScales['layer']>];
    expect(largest(measured.key, key)).toBeCloseTo(127, 3);
  });

  test('an element of the keys that is always large is made smaller, and takes no steps from others', () => {
    const even = range(3, { key: new Float32Array(kvHeads * headSize).fill(2) });
    even.key[6] = 200;
    const [{ key }] = of(even) as [ReturnType<StateScales['layer']>];
    expect(key[0]! / key[6]!).toBeCloseTo(100, 3);
    expect(key[0]! * 2).toBeCloseTo(127, 3);
  });

  test('the two elements that rotary positions turn into each other share a scale', () => {
    const [{ query, key }] = of(range(3)) as [ReturnType<StateScales['layer']>];
    for (const gains of [query, key]) {
      for (const [at, gain] of gains.entries()) {
        const pair = at % headSize < headSize / 2 ? at + headSize / 2 : at - headSize / 2;
        expect(gains[pair]).toBe(gain);
      }
      expect(new Set(gains).size).toBeGreaterThan(1);
    }
  });

  test('scales are positive numbers, whatever is zero', () => {
    for (const layer of of(partlyZero, nothing)) {
      const { query, key, value, mixedReach } = layer;
      for (const scale of [...query, ...key, value, mixedReach]) {
        expect(Number.isFinite(scale)).toBe(true);
        expect(scale).toBeGreaterThan(0);
      }
    }
  });
});

test('heads have scales of their own, but those that share a key have the same', () => {
  const [{ query, key }] = scalesOf([range(3)]) as [ReturnType<StateScales['layer']>];
  const head = (gains: Float32Array, index: number) => gains.slice(index * headSize, (index + 1) * headSize);
  expect(head(key, 0)).not.toEqual(head(key, 1));
  for (let index = 0; index < heads; index++) {
    expect(head(query, index)).toEqual(head(query, index - (index % group)));
  }
});

test('all heads have the same scales where the weights of one norm hold for all', () => {
  const [{ query, key }] = scalesOf([range(3)], { queryKeyNorm: true }) as [ReturnType<StateScales['layer']>];
  for (const gains of [query, key]) {
    for (const [at, gain] of gains.entries()) expect(gain).toBe(gains[at % headSize]);
  }
});

test('layers have scales of their own', () => {
  const both = scalesOf([range(3), range(8)]);
  expect(both[0]).toEqual(scalesOf([range(3)])[0]);
  expect(both[1]).toEqual(scalesOf([range(8)])[0]);
});

test('values are cut off at 0.8 of the largest that was measured', () => {
  const [{ value }] = scalesOf([range(3, { value: Float32Array.of(1, 5, 2) })]) as [
    ReturnType<StateScales['layer']>,
  ];
  expect(value * 0.8 * 5).toBeCloseTo(127, 4);
});

test('what attention mixes of scaled values reaches to 0.8 of the largest that was measured', () => {
  const measured = range(3, { value: Float32Array.of(1, 5, 2), mixed: Float32Array.of(0.5, 3) });
  const [{ value, mixedReach }] = scalesOf([measured]) as [ReturnType<StateScales['layer']>];
  expect(mixedReach).toBeCloseTo(0.8 * 3 * value, 4);
});
