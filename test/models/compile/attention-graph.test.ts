import { describe, expect, test } from 'vitest';
import { decodeWidth } from '../../../src/models/compile/attention-graph.js';
import type { DecoderConfig } from '../../../src/models/compile/checkpoint.js';
import { type AttentionOptions, type AttentionRow, openAttention } from './attention-fixture.js';
import { attend, normHeads, rotate } from './attention-reference.js';
import { smallDecoder } from './small-decoder.js';

describe.each([8, 16])('heads of %i numbers', (headSize) => {
  const config = { ...smallDecoder, headSize };
  const { heads, kvHeads } = config;
  const [width, kvWidth] = [heads * headSize, kvHeads * headSize];

  /** Numbers without a pattern, between -size and size. */
  function noise(length: number, seed: number, size: number): number[] {
    return Array.from({ length }, (_, at) => size * Math.sin((at + 1) * (at + seed) * 0.7));
  }

  /** A row of `cached` positions in the cache and `fresh` new ones; in bytes what is cached is whole. */
  function makeRow(cached: number, fresh: number, seed: number, size = 2): AttentionRow {
    const stored = (salt: number) =>
      Array.from({ length: cached }, (_, position) => {
        const numbers = noise(kvWidth, seed + salt + 17 * position, size);
        return size > 100 ? numbers.map(Math.round) : numbers;
      });
    return {
      keys: stored(1),
      values: stored(2),
      packed: Array.from({ length: fresh }, (_, position) =>
        noise(width + 2 * kvWidth, seed + 5 + 23 * position, size).map((number, at) =>
          // Queries so large that no one position has all the weight.
          at < width && size > 100 ? number / 1000 : number,
        ),
      ),
    };
  }

  /** The parts of a packed position, normalized and rotated where that is due. */
  function split(packed: ArrayLike<number>, position: number, norms?: AttentionOptions['norms']) {
    const numbers = Array.from(packed);
    const rotated = (from: number, to: number, norm: 'q_norm' | 'k_norm') => {
      const states = numbers.slice(from, to);
      const normed = norms ? normHeads(states, norms[norm], config.normEpsilon) : states;
      return rotate(normed, position, headSize, config.rope.theta);
    };
    return {
      query: rotated(0, width, 'q_norm'),
      key: rotated(width, width + kvWidth, 'k_norm'),
      value: numbers.slice(width + kvWidth),
    };
  }

  /** What the new positions of a row mix. */
  function reference({ keys, values, packed }: AttentionRow, norms?: AttentionOptions['norms']): number[][] {
    const fresh = packed.map((numbers, at) => split(numbers, keys.length + at, norms));
    const all = {
      keys: [...keys, ...fresh.map(({ key }) => key)],
      values: [...values, ...fresh.map(({ value }) => value)],
    };
    return fresh.map(({ query }, at) =>
      attend(config, {
        query: () => query,
        keys: all.keys.slice(0, keys.length + at + 1),
        values: all.values.slice(0, keys.length + at + 1),
        scale: 1 / Math.sqrt(headSize),
      }),
    );
  }

  /** The largest difference between numbers of the same places. */
  function distance(a: readonly (readonly number[])[], b: readonly (readonly number[])[]): number {
    expect(a.map((numbers) => numbers.length)).toEqual(b.map((numbers) => numbers.length));
    return Math.max(
      ...a.flatMap((numbers, row) => numbers.map((number, at) => Math.abs(number - b[row]![at]!))),
    );
  }

  /** How a number is kept in a byte. */
  /** Bytes have no -0. */
  const toByte = (number: number) => Math.min(127, Math.max(-128, roundToEven(number))) + 0;

  function roundToEven(number: number): number {
    const below = Math.floor(number);
    if (number - below !== 0.5) return Math.round(number);
    return below % 2 === 0 ? below : below + 1;
  }

  /** What the cache holds of a row after a run. */
  function held({ keys, values, packed }: AttentionRow) {
    const fresh = packed.map((numbers, at) => split(numbers, keys.length + at));
    return {
      keys: [...keys, ...fresh.map(({ key }) => key)].map((numbers) => Array.from(numbers)),
      values: [...values, ...fresh.map(({ value }) => value)].map((numbers) => Array.from(numbers)),
    };
  }

  describe('in float32', () => {
    const open = (changes: Partial<DecoderConfig> = {}) =>
      openAttention({ config: { ...config, ...changes }, kvFormat: 'float32' });

    test.each([
      ['prompts that begin', [0, 0], 5, 5],
      ['prompts that begin, in a cache that has room', [0, 0, 0], 4, 6],
      ['one position of one sequence with nothing cached', [0], 1, 1],
      ['a prompt of which something is cached', [7], 3, 16],
      ['a prompt that fills its cache', [7], 3, 10],
      ['one position each of sequences of different lengths, one of which is empty', [9, 0, 3, 10], 1, 11],
    ])('%s: what the definition says', async (_, cached, fresh, capacity) => {
      const { run } = await open();
      const rows = cached.map((length, index) => makeRow(length, fresh, 100 * index));
      const { mixed, keys, values } = await run(rows, capacity);
      for (const [index, row] of rows.entries()) {
        expect(distance(mixed[index]!, reference(row))).toBeLessThan(1e-4);
        expect(distance(keys[index]!, held(row).keys)).toBeLessThan(1e-5);
        expect(distance(values[index]!, held(row).values)).toBeLessThan(1e-6);
      }
    });

    test('positions are given to the end of the context', async () => {
      const { run } = await open();
      const row = makeRow(4095, 1, 3);
      const { mixed } = await run([row], 4096);
      expect(distance(mixed[0]!, reference(row))).toBeLessThan(1e-4);
    });

    test.each([
      ['each head is normalized before its rotation', 1],
      ['each head is normalized over its own size, whatever its length', 1000],
    ])('%s', async (_, size) => {
      const norms = {
        q_norm: Float32Array.from(noise(headSize, 3, 1.5)),
        k_norm: Float32Array.from(noise(headSize, 9, 1.5)),
      };
      const { run } = await openAttention({
        config: { ...config, queryKeyNorm: true },
        kvFormat: 'float32',
        norms,
      });
      const row = makeRow(0, 4, 7, size);
      const { mixed, key, keys } = await run([row], 4);
      const states = row.packed.map((packed, position) => split(packed, position, norms));
      expect(
        distance(
          keys[0]!,
          states.map((state) => state.key),
        ),
      ).toBeLessThan(1e-4);
      expect(key).toEqual(keys);
      const expected = reference(row, norms);
      expect(distance(mixed[0]!, expected) / Math.max(...expected.flat().map(Math.abs))).toBeLessThan(1e-4);
    });

    test.each([
      ['decoding', [9, 0, 3], 1],
      ['reading on', [5], 4],
      ['beginning', [0, 0], 4],
    ])('what stands in unused places changes no bit of %s, a number or not', async (_, cached, fresh) => {
      const { run } = await open();
      const rows = cached.map((length, index) => makeRow(length, fresh, 100 * index));
      const { mixed } = await run(rows, 12);
      expect((await run(rows, 12, 1e30)).mixed).toEqual(mixed);
      expect((await run(rows, 12, Number.NaN)).mixed).toEqual(mixed);
    });
  });

  describe('in bytes', () => {
    /** So large that what is scaled by it fills a byte. */
    const size = 126;
    const open = () => openAttention({ config, kvFormat: 'int8' });

    /** What one new position mixes with the cache's own numbers, its own among them. */
    function decoded(row: AttentionRow): number[] {
      const scale = 1 / Math.sqrt(headSize);
      const { keys, values } = held(row);
      const { query } = split(row.packed[0]!, row.keys.length);
      const inBytes = (positions: number[][]) => positions.map((numbers) => numbers.map(toByte));
      return attend(config, { query: () => query, keys: inBytes(keys), values: inBytes(values), scale });
    }

    test('one position each of sequences of different lengths: what the definition says of the cached bytes', async () => {
      const { run } = await open();
      const rows = [9, 0, 3, 16].map((length, index) => makeRow(length, 1, 100 * index, size));
      const { mixed } = await run(rows, 17);
      for (const [index, row] of rows.entries()) {
        expect(distance(mixed[index]!, [decoded(row)])).toBeLessThan(1e-2);
      }
    });

    test('keys are rotated by their positions', async () => {
      const { run } = await open();
      const row = makeRow(37, 1, 5, size);
      const { key } = await run([row], 40);
      expect(distance([key[0]![0]!], [split(row.packed[0]!, 37).key])).toBeLessThan(1e-3);
    });

    test('one position with nothing cached is its own value', async () => {
      const { run } = await open();
      const row = makeRow(0, 1, 11, size);
      const { mixed } = await run([row], 1);
      const { value } = split(row.packed[0]!, 0);
      for (const [at, number] of mixed[0]![0]!.entries()) {
        const head = Math.floor(Math.floor(at / headSize) / (heads / kvHeads));
        expect(number).toBeCloseTo(value[head * headSize + (at % headSize)]!, 3);
      }
    });

    test.each([
      ['decoded', 1],
      ['decoded several at a time', decodeWidth],
      ['read', decodeWidth + 1],
    ])(
      'keys and values that are %s are rounded to bytes, and cut off where they are too large',
      async (_, fresh) => {
        const { run } = await open();
        const row = makeRow(4, fresh, 5, 200);
        const { key, keys, values, type } = await run([row], 4 + fresh);
        expect(type).toBe('int8');
        const expected = held(row);
        const [cachedKeys, cachedValues] = [row.keys, row.values].map((positions) =>
          positions.map((numbers) => Array.from(numbers, (number) => Number(Int8Array.of(number)[0]))),
        );
        expect(keys[0]!.slice(0, 4)).toEqual(cachedKeys);
        expect(values[0]!.slice(0, 4)).toEqual(cachedValues);
        expect(keys[0]!.slice(4)).toEqual(key[0]!.map((numbers) => numbers.map(toByte)));
        const roundedValues = expected.values
          .slice(4)
          .map((numbers) => numbers.map((number) => toByte(Math.fround(number))));
        expect(values[0]!.slice(4)).toEqual(roundedValues);
        expect(values[0]!.slice(4).flat()).toContain(127);
        expect(values[0]!.slice(4).flat()).toContain(-128);
      },
    );

    // Of the second so many scores would be in memory at once that they are computed block by block.
    describe.each([config.contextLength, 2 ** 17])('in a context of %i', (contextLength) => {
      test.each([
        ['prompts that begin', [0, 0], 5, 5],
        ['prompts that begin, in a cache that has room', [0, 0, 0], 4, 6],
        ['a prompt of which something is cached', [7], decodeWidth + 1, decodeWidth + 8],
        ['one position of one sequence with nothing cached', [0], 1, 3],
      ])('%s: what the definition says of exact queries', async (_, cached, fresh, capacity) => {
        const { run } = await openAttention({ config: { ...config, contextLength }, kvFormat: 'int8' });
        const rows = cached.map((length, index) => makeRow(length, fresh, 100 * index, size));
        const { mixed } = await run(rows, capacity);
        for (const [index, row] of rows.entries()) {
          expect(distance(mixed[index]!, reference(row))).toBeLessThan(1e-2);
        }
      });
    });

    test.each([
      ['decoding', [9, 0, 3], 1],
      ['decoding several at a time', [5], decodeWidth],
      ['reading on', [5], decodeWidth + 1],
      ['beginning', [0, 0], 4],
    ])('what stands in unused places changes no bit of %s', async (_, cached, fresh) => {
      const { run } = await open();
      const rows = cached.map((length, index) => makeRow(length, fresh, 100 * index, size));
      const capacity = 2 * decodeWidth;
      const { mixed } = await run(rows, capacity);
      expect((await run(rows, capacity, -128)).mixed).toEqual(mixed);
      expect((await run(rows, capacity, 77)).mixed).toEqual(mixed);
    });

    test.each([1, 2, 9, 40, 300])(
      'positions behind %i that are cached mix the same to the bit at once and one after the other',
      async (length) => {
        const { run } = await open();
        for (let fresh = 2; fresh <= decodeWidth; fresh++) {
          const row = makeRow(length, fresh, 7 * fresh, size);
          const atOnce = await run([row], length + decodeWidth);
          let { keys, values }: Pick<AttentionRow, 'keys' | 'values'> = row;
          for (const [position, packed] of row.packed.entries()) {
            const one = await run([{ keys, values, packed: [packed] }], length + fresh);
            expect(one.mixed[0]![0], `${position} of ${fresh}`).toEqual(atOnce.mixed[0]![position]);
            [keys, values] = [one.keys[0]!, one.values[0]!];
          }
          expect([keys, values]).toEqual([atOnce.keys[0], atOnce.values[0]]);
        }
      },
    );

    test.each([1, 9, 40, 300])(
      'a sequence of %i cached positions mixes the same to the bit, however large the cache and whoever shares it',
      async (length) => {
        const { run } = await open();
        const row = makeRow(length, 1, 7, size);
        const alone = (await run([row], length + 1)).mixed[0];
        for (const capacity of [length + 2, length + 16, length + 61, 2 * length + 200]) {
          expect((await run([row], capacity)).mixed[0], `in ${capacity}`).toEqual(alone);
          const mates = [makeRow(0, 1, 50, size), row, makeRow(capacity - 1, 1, 60, size)];
          expect((await run(mates, capacity)).mixed[1], `among others in ${capacity}`).toEqual(alone);
        }
      },
    );

    test('two thousand positions of almost the same weight count in full', async () => {
      const { run } = await open();
      const length = 2000;
      // Scores between -0.5 and 0.5, and values whose mean is far from 0, so that what is lost of weights shows in it.
      const whole = makeRow(length, 1, 13, size);
      const values = whole.values.map((numbers) =>
        Array.from(numbers, (number) => Math.round(60 + number / 2)),
      );
      const packed = whole.packed.map((numbers) =>
        Array.from(numbers, (number, at) => (at < width ? number / 10 : number)),
      );
      const row = { keys: whole.keys, values, packed };
      const { mixed } = await run([row], length + 1);
      const expected = decoded(row);
      for (const [at, number] of mixed[0]![0]!.entries()) {
        expect(Math.abs(number / expected[at]! - 1)).toBeLessThan(1e-3);
      }
    });
  });
});
