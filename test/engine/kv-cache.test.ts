import { describe, expect, it } from 'vitest';
import type { DecoderOutput } from '../../src/engine/decoder-runner.js';
import { KvCache } from '../../src/engine/kv-cache.js';
import { bytesPerPosition, type KvShape } from '../../src/engine/kv-layer.js';
import type { KvTensor } from '../../src/engine/kv-plane.js';

const shape: KvShape = { layers: 2, kvHeads: 2, headSize: 2, kvFormat: 'float32' };
const bytes = bytesPerPosition(shape);

function build(maxBytes = 8 * 1000 * bytes) {
  return new KvCache({ shape, slots: 8, contextLength: 1000, maxBytes });
}

/** A number that says which sequence, position, layer, head and kind it belongs to. */
function mark(sequence: number, position: number, layer: number, head: number, kind: number): number {
  return sequence * 100_000 + position * 100 + layer * 10 + head * 2 + kind;
}

/** An output in which row i holds positions from[i].. of sequence sequences[i]. */
function output(sequences: readonly number[], from: readonly number[], width: number): DecoderOutput {
  const array = (layer: number, kind: number) =>
    Float32Array.from({ length: sequences.length * 2 * width * 2 }, (_, at) => {
      const row = Math.floor(at / (2 * width * 2));
      const head = Math.floor(at / (width * 2)) % 2;
      const position = from[row]! + (Math.floor(at / 2) % width);
      return mark(sequences[row]!, position, layer, head, kind);
    });
  return {
    logits: new Float32Array(0),
    keys: [array(0, 0), array(1, 0)],
    values: [array(0, 1), array(1, 1)],
  };
}

/** Asserts that `row` holds positions 0..length-1 of `sequence`, in every layer, head and kind. */
function expectRow(cache: KvCache, row: number, sequence: number, length: number) {
  const view = cache.view(row, 1);
  for (let layer = 0; layer < 2; layer++) {
    for (let head = 0; head < 2; head++) {
      for (let position = 0; position < length; position++) {
        const at = (head * cache.capacity + position) * 2;
        const place = `row ${row}, layer ${layer}, head ${head}, position ${position}`;
        expect(view[layer]![0]!.data[at], place).toBe(mark(sequence, position, layer, head, 0));
        expect(view[layer]![1]!.data[at + 1], place).toBe(mark(sequence, position, layer, head, 1));
      }
    }
  }
  expect(cache.length(row)).toBe(length);
}

/** Three rows of 5, 9 and 2 positions of sequences 1, 2 and 3. */
function filled(limit = 1000) {
  const cache = build();
  cache.fit({ rows: 3, longest: 9, limit });
  const written = output([1, 2, 3], [0, 0, 0], 9);
  for (const [row, count] of [5, 9, 2].entries())
    cache.append(written, 9, [{ row: row, tokens: count, outputRow: row }]);
  return cache;
}

describe('KvCache', () => {
  it('keeps what is appended, row by row', () => {
    const cache = filled();
    expectRow(cache, 0, 1, 5);
    expectRow(cache, 1, 2, 9);
    expectRow(cache, 2, 3, 2);
  });

  it('appends behind what a row holds, from any row of an output', () => {
    const cache = filled();
    cache.append(output([1, 3], [5, 2], 1), 1, [{ row: 2, tokens: 1, outputRow: 1 }]);
    expectRow(cache, 2, 3, 3);
    expectRow(cache, 1, 2, 9);
  });

  it('appends a prompt long enough to be copied in one piece', () => {
    const cache = build();
    cache.fit({ rows: 2, longest: 200, limit: 300 });
    cache.append(output([4], [0], 200), 200, [{ row: 1, tokens: 190, outputRow: 0 }]);
    expectRow(cache, 1, 4, 190);
  });

  it('holds every row when its capacity grows and when it shrinks', () => {
    const cache = filled();
    const before = cache.capacity;
    cache.fit({ rows: 3, longest: 400, limit: 1000 });
    expect(cache.capacity).toBeGreaterThanOrEqual(400);
    for (const [row, length] of [5, 9, 2].entries()) expectRow(cache, row, row + 1, length);
    cache.fit({ rows: 3, longest: 9, limit: 1000 });
    expect(cache.capacity).toBe(before);
    for (const [row, length] of [5, 9, 2].entries()) expectRow(cache, row, row + 1, length);
  });

  it('grows ahead of need, but never beyond what a row may reach', () => {
    const cache = build();
    cache.fit({ rows: 1, longest: 100, limit: 1000 });
    expect(cache.capacity).toBeGreaterThan(100);
    cache.fit({ rows: 1, longest: 100, limit: 102 });
    expect(cache.capacity).toBe(102);
  });

  it('keeps its capacity while the need varies a little', () => {
    const cache = build();
    cache.fit({ rows: 1, longest: 100, limit: 1000 });
    const { capacity } = cache;
    for (const longest of [101, capacity, 90, 100]) {
      cache.fit({ rows: 1, longest, limit: 1000 });
      expect(cache.capacity).toBe(capacity);
    }
  });

  it('moves the last row into a gap', () => {
    const cache = filled();
    cache.copyRow(2, 0);
    cache.fit({ rows: 2, longest: 9, limit: 1000 });
    expectRow(cache, 0, 3, 2);
    expectRow(cache, 1, 2, 9);
    expect(cache.rows).toBe(2);
  });

  it('copies a row for a new choice', () => {
    const cache = filled();
    cache.fit({ rows: 4, longest: 9, limit: 1000 });
    cache.copyRow(1, 3);
    for (const [row, sequence] of [1, 2, 3, 2].entries()) {
      expectRow(cache, row, sequence, [5, 9, 2, 9][row]!);
    }
  });

  it('gives a row that is used again nothing of its former owner', () => {
    const cache = filled();
    cache.fit({ rows: 2, longest: 9, limit: 1000 });
    cache.fit({ rows: 3, longest: 9, limit: 1000 });
    expect(cache.length(2)).toBe(0);
    cache.append(output([7], [0], 1), 1, [{ row: 2, tokens: 1, outputRow: 0 }]);
    expectRow(cache, 2, 7, 1);
  });

  it('views neighbouring rows without a copy', () => {
    const cache = filled();
    const all = cache.view(0, 3)[1]![0]!.data;
    const some = cache.view(1, 2)[1]![0]!.data;
    expect(some.buffer).toBe(all.buffer);
    expect(some).toEqual(all.subarray(all.length / 3));
    expect(some).toHaveLength(2 * 2 * cache.capacity * 2);
  });

  it('counts bytes by rows and capacity, and none at rest', () => {
    const cache = filled();
    expect(bytes).toBe(2 * 2 * 2 * 2 * 4);
    expect(cache.bytesUsed).toBe(3 * cache.capacity * bytes);
    cache.fit({ rows: 0, longest: 0, limit: 0 });
    expect(cache.bytesUsed).toBe(0);
  });

  it('fills its budget to the last position', () => {
    const cache = build(60 * bytes);
    cache.fit({ rows: 3, longest: 20, limit: 20 });
    cache.append(output([9], [0], 20), 20, [{ row: 2, tokens: 20, outputRow: 0 }]);
    expectRow(cache, 2, 9, 20);
    expect(cache.bytesUsed).toBe(60 * bytes);
    expect(() => cache.fit({ rows: 3, longest: 21, limit: 21 })).toThrow(/budget/);
  });

  it('refuses to append beyond its capacity', () => {
    const cache = build();
    cache.fit({ rows: 1, longest: 4, limit: 4 });
    expect(() => cache.append(output([1], [0], 5), 5, [{ row: 0, tokens: 5, outputRow: 0 }])).toThrow(
      /capacity/,
    );
  });
});

describe('KvCache in 8 bits', () => {
  const small: KvShape = { layers: 2, kvHeads: 2, headSize: 4, kvFormat: 'int8' };
  const open = () => new KvCache({ shape: small, slots: 4, contextLength: 500, maxBytes: 2 ** 24 });

  /** Numbers without a pattern, in vectors of very different sizes. */
  function random(rows: number, width: number, seed: number): DecoderOutput {
    const array = (salt: number) =>
      Float32Array.from(
        { length: rows * 2 * width * 4 },
        (_, at) => Math.sin((at + 1) * (seed + salt) * 0.37) * 10 ** (Math.floor(at / 4) % 5),
      );
    return { logits: new Float32Array(0), keys: [array(1), array(2)], values: [array(3), array(4)] };
  }

  /** The vectors that the graph makes of a row: by layer, key or value, head and position. */
  function vectors(cache: KvCache, row: number): number[][] {
    const found: number[][] = [];
    for (const [key, keyScale, value, valueScale] of cache.view(row, 1) as [
      KvTensor,
      KvTensor,
      KvTensor,
      KvTensor,
    ][]) {
      const capacity = cache.capacity;
      expect(key.dims).toEqual([1, 2, 4, capacity]);
      expect(value.dims).toEqual([1, 2, capacity, 4]);
      for (const scale of [keyScale, valueScale]) expect(scale.dims).toEqual([1, 2, 1, capacity]);
      for (let head = 0; head < 2; head++) {
        for (let position = 0; position < cache.length(row); position++) {
          const at = head * capacity + position;
          const vector = (
            data: KvTensor['data'],
            scale: KvTensor['data'],
            index: (element: number) => number,
          ) => [0, 1, 2, 3].map((element) => (data[index(element)]! - 128) * scale[at]!);
          found.push(
            vector(key.data, keyScale.data, (element) => (head * 4 + element) * capacity + position),
            vector(value.data, valueScale.data, (element) => at * 4 + element),
          );
        }
      }
    }
    return found;
  }

  /** What `vectors` would be if nothing were rounded. */
  function exact({ keys, values }: DecoderOutput, row: number, width: number, tokens: number): number[][] {
    const found: number[][] = [];
    for (const [layer, key] of keys.entries()) {
      for (let head = 0; head < 2; head++) {
        for (let position = 0; position < tokens; position++) {
          const at = ((row * 2 + head) * width + position) * 4;
          found.push([...key.subarray(at, at + 4)], [...values[layer]!.subarray(at, at + 4)]);
        }
      }
    }
    return found;
  }

  function expectNear(rounded: number[][], wanted: number[][]) {
    expect(rounded).toHaveLength(wanted.length);
    for (const [index, vector] of wanted.entries()) {
      const largest = Math.max(...vector.map(Math.abs));
      for (const [element, number] of vector.entries()) {
        expect(Math.abs(rounded[index]![element]! - number)).toBeLessThanOrEqual(largest * (0.5001 / 127));
      }
    }
  }

  it('rounds each vector by its own largest magnitude', () => {
    const cache = open();
    const output = random(3, 7, 1);
    cache.fit({ rows: 3, longest: 7, limit: 500 });
    for (const [row, tokens] of [7, 4, 6].entries())
      cache.append(output, 7, [{ row, outputRow: row, tokens }]);
    for (const [row, tokens] of [7, 4, 6].entries()) {
      expectNear(vectors(cache, row), exact(output, row, 7, tokens));
    }
  });

  it('keeps a vector of zeros at zero', () => {
    const cache = open();
    cache.fit({ rows: 1, longest: 1, limit: 500 });
    const zeros = () => [new Float32Array(8), new Float32Array(8)];
    const nothing = { logits: new Float32Array(0), keys: zeros(), values: zeros() };
    cache.append(nothing, 1, [{ row: 0, outputRow: 0, tokens: 1 }]);
    for (const vector of vectors(cache, 0)) for (const number of vector) expect(number).toBeCloseTo(0, 10);
  });

  it('holds every row when its capacity grows and shrinks and rows move', () => {
    const cache = open();
    const output = random(3, 60, 2);
    cache.fit({ rows: 3, longest: 60, limit: 500 });
    for (const row of [0, 1, 2]) cache.append(output, 60, [{ row, outputRow: row, tokens: 50 + row }]);
    const before = [0, 1, 2].map((row) => vectors(cache, row));
    cache.fit({ rows: 3, longest: 300, limit: 500 });
    expect([0, 1, 2].map((row) => vectors(cache, row))).toEqual(before);
    cache.fit({ rows: 3, longest: 60, limit: 500 });
    expect([0, 1, 2].map((row) => vectors(cache, row))).toEqual(before);
    cache.copyRow(2, 0);
    expect(vectors(cache, 0)).toEqual(before[2]);
    expect(vectors(cache, 1)).toEqual(before[1]);
  });

  it('takes little more than a quarter of the bytes', () => {
    expect(bytesPerPosition({ ...small, headSize: 64 })).toBe(2 * 2 * 2 * (64 + 4));
    expect(bytesPerPosition({ ...small, headSize: 64, kvFormat: 'float32' })).toBe(2 * 2 * 2 * 64 * 4);
  });
});
