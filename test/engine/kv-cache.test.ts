import { describe, expect, it } from 'vitest';
import type { DecoderOutput } from '../../src/engine/decoder-runner.js';
import { bytesPerPosition, KvCache, type KvShape, noPast } from '../../src/engine/kv-cache.js';

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
      const head = Math.floor(at / 2) % 2;
      const position = from[row]! + (Math.floor(at / 4) % width);
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
        expect(view[layer]!.keys.data[at], place).toBe(mark(sequence, position, layer, head, 0));
        expect(view[layer]!.values.data[at + 1], place).toBe(mark(sequence, position, layer, head, 1));
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

  it('appends a long prompt', () => {
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
    const all = cache.view(0, 3)[1]!.keys.data;
    const some = cache.view(1, 2)[1]!.keys.data;
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

  /** Bytes without a pattern, [rows, width, 2 heads, 4]. */
  function random(rows: number, width: number, seed: number): DecoderOutput {
    const array = (salt: number) =>
      Uint8Array.from(
        { length: rows * width * 2 * 4 },
        (_, at) => (Math.imul(at + 1, 0x9e3779b9 + seed + salt) >>> 13) % 256,
      );
    return { logits: new Float32Array(0), keys: [array(1), array(2)], values: [array(3), array(4)] };
  }

  /** The vectors that the graph sees of a row: by layer, head and position, of keys and of values. */
  function vectors(cache: KvCache, row: number): number[][] {
    const found: number[][] = [];
    const { capacity } = cache;
    for (const { keys, values } of cache.view(row, 1)) {
      expect(keys.dims).toEqual([1, 2, 4, capacity]);
      expect(values.dims).toEqual([1, 2, capacity, 4]);
      for (let head = 0; head < 2; head++) {
        for (let position = 0; position < cache.length(row); position++) {
          const elements = [0, 1, 2, 3];
          found.push(
            elements.map((element) => keys.data[(head * 4 + element) * capacity + position]!),
            elements.map((element) => values.data[(head * capacity + position) * 4 + element]!),
          );
        }
      }
    }
    return found;
  }

  /** What `vectors` are of the first `tokens` positions of a row of an output. */
  function written({ keys, values }: DecoderOutput, row: number, width: number, tokens: number): number[][] {
    const found: number[][] = [];
    for (const [layer, key] of keys.entries()) {
      for (let head = 0; head < 2; head++) {
        for (let position = 0; position < tokens; position++) {
          const at = ((row * width + position) * 2 + head) * 4;
          found.push([...key.subarray(at, at + 4)], [...values[layer]!.subarray(at, at + 4)]);
        }
      }
    }
    return found;
  }

  it('keeps the bytes that are appended, keys with their positions last', () => {
    const cache = open();
    const output = random(3, 7, 1);
    cache.fit({ rows: 3, longest: 7, limit: 500 });
    const tokens = [7, 4, 6];
    cache.append(
      output,
      7,
      tokens.map((count, row) => ({ row, outputRow: row, tokens: count })),
    );
    for (const [row, count] of tokens.entries()) {
      expect(vectors(cache, row)).toEqual(written(output, row, 7, count));
    }
  });

  it('holds every row when its capacity grows and shrinks and rows move', () => {
    const cache = open();
    const output = random(3, 60, 2);
    cache.fit({ rows: 3, longest: 60, limit: 500 });
    for (const row of [0, 1, 2]) cache.append(output, 60, [{ row, outputRow: row, tokens: 50 + row }]);
    const before = [0, 1, 2].map((row) => written(output, row, 60, 50 + row));
    cache.fit({ rows: 3, longest: 300, limit: 500 });
    expect([0, 1, 2].map((row) => vectors(cache, row))).toEqual(before);
    cache.fit({ rows: 3, longest: 60, limit: 500 });
    expect([0, 1, 2].map((row) => vectors(cache, row))).toEqual(before);
    cache.copyRow(2, 0);
    expect(vectors(cache, 0)).toEqual(before[2]);
    expect(vectors(cache, 1)).toEqual(before[1]);
  });

  it('takes a quarter of the bytes', () => {
    expect(bytesPerPosition({ ...small, headSize: 64 })).toBe(2 * 2 * 2 * 64);
    expect(bytesPerPosition({ ...small, headSize: 64, kvFormat: 'float32' })).toBe(2 * 2 * 2 * 64 * 4);
  });
});

describe.each([
  ['float32', [3, 2, 0, 2]],
  ['int8', [3, 2, 2, 0]],
] as const)('the past of rows that have none, in %s', (kvFormat, keyDims) => {
  it('has the dimensions of a cache of no positions', () => {
    const past = noPast({ ...shape, kvFormat }, 3);
    expect(past).toHaveLength(2);
    for (const { keys, values } of past) {
      expect(keys.dims).toEqual(keyDims);
      expect(values.dims).toEqual([3, 2, 0, 2]);
      for (const { data } of [keys, values]) {
        expect(data).toHaveLength(0);
        expect(data).toBeInstanceOf(kvFormat === 'int8' ? Uint8Array : Float32Array);
      }
    }
  });
});

describe.each(['float32', 'int8'] as const)('what is read of a row in %s', (kvFormat) => {
  it('is the same when it is restored at another place and capacity', () => {
    const format = { ...shape, kvFormat };
    const filledRow = (length: number) => {
      const cache = new KvCache({ shape: format, slots: 2, contextLength: 100, maxBytes: 2 ** 20 });
      cache.fit({ rows: 2, longest: length, limit: 100 });
      return cache;
    };
    const array = (seed: number) => {
      const numbers = Array.from({ length: 20 * 2 * 2 }, (_, at) => (at * seed + 7) % 251);
      return kvFormat === 'int8' ? Uint8Array.from(numbers) : Float32Array.from(numbers);
    };
    const output = { keys: [array(3), array(5)], values: [array(11), array(13)] };
    const from = filledRow(20);
    from.append(output, 20, [{ row: 1, outputRow: 0, tokens: 20 }]);
    const to = filledRow(60);
    to.restore(0, 8, from.read(1, 0, 8));
    to.restore(0, 12, from.read(1, 8, 12));
    expect(to.length(0)).toBe(20);
    expect(to.read(0, 0, 20)).toEqual(from.read(1, 0, 20));
  });
});
