import { describe, expect, it } from 'vitest';
import { bytesPerPosition, KvCache, type KvShape } from '../../src/engine/kv-cache.js';

const shape: KvShape = { layers: 2, kvHeads: 2, headSize: 2, kvFormat: 'float32' };
const bytes = bytesPerPosition(shape);

function build(maxBytes = 8 * 1000 * bytes) {
  return new KvCache({ shape, slots: 8, contextLength: 1000, maxBytes });
}

/** A number that says which sequence, position, layer, head and kind it belongs to. */
function mark(sequence: number, position: number, layer: number, head: number, kind: number): number {
  return sequence * 100_000 + position * 100 + layer * 10 + head * 2 + kind;
}

/** Does what a run does that puts the next `tokens` positions of `sequence` into a row. */
function write(cache: KvCache, row: number, sequence: number, tokens: number) {
  const from = cache.length(row);
  cache.advance(row, tokens);
  for (const [layer, { keys, values }] of cache.view(row, 1).entries()) {
    for (let head = 0; head < 2; head++) {
      for (let position = from; position < from + tokens; position++) {
        const at = (head * cache.capacity + position) * 2;
        keys.data.fill(mark(sequence, position, layer, head, 0), at, at + 2);
        values.data.fill(mark(sequence, position, layer, head, 1), at, at + 2);
      }
    }
  }
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

/** A copy of positions of a row, in the middle of other memory. */
function read(cache: KvCache, row: number, position: number, count: number) {
  const size = count * cache.bytesPerPosition;
  const bytes = new Uint8Array(new ArrayBuffer(size + 32), 16, size);
  cache.read(row, position, count, bytes);
  return bytes;
}

/** Three rows of 5, 9 and 2 positions of sequences 1, 2 and 3. */
function filled(limit = 1000) {
  const cache = build();
  cache.fit({ rows: 3, longest: 9, limit });
  for (const [row, count] of [5, 9, 2].entries()) write(cache, row, row + 1, count);
  return cache;
}

describe('KvCache', () => {
  it('keeps what a run puts into it, row by row', () => {
    const cache = filled();
    expectRow(cache, 0, 1, 5);
    expectRow(cache, 1, 2, 9);
    expectRow(cache, 2, 3, 2);
  });

  it('keeps what is put behind what a row holds', () => {
    const cache = filled();
    write(cache, 2, 3, 1);
    expectRow(cache, 2, 3, 3);
    expectRow(cache, 1, 2, 9);
  });

  it('keeps a long prompt', () => {
    const cache = build();
    cache.fit({ rows: 2, longest: 200, limit: 300 });
    write(cache, 1, 4, 190);
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
    write(cache, 2, 7, 1);
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
    write(cache, 2, 9, 20);
    expectRow(cache, 2, 9, 20);
    expect(cache.bytesUsed).toBe(60 * bytes);
    expect(() => cache.fit({ rows: 3, longest: 21, limit: 21 })).toThrow(/budget/);
  });

  it('refuses positions beyond its capacity', () => {
    const cache = build();
    cache.fit({ rows: 1, longest: 4, limit: 4 });
    expect(() => cache.advance(0, 5)).toThrow(/capacity/);
    expect(cache.length(0)).toBe(0);
  });

  it('takes a quarter of the bytes in 8 bits, and has what runs put there as such', () => {
    const inBytes = { ...shape, kvFormat: 'int8' } as const;
    expect(bytesPerPosition(inBytes)).toBe(bytes / 4);
    const cache = new KvCache({ shape: inBytes, slots: 2, contextLength: 100, maxBytes: 2 ** 20 });
    cache.fit({ rows: 2, longest: 10, limit: 100 });
    for (const { keys, values } of cache.view(0, 2)) {
      for (const { data, dims } of [keys, values]) {
        expect(data).toBeInstanceOf(Int8Array);
        expect(dims).toEqual([2, 2, cache.capacity, 2]);
        data.fill(-7);
      }
    }
    cache.advance(1, 10);
    expect(new Int8Array(read(cache, 1, 0, 10)).every((byte) => byte === -7)).toBe(true);
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
    const from = filledRow(20);
    for (const [layer, { keys, values }] of from.view(1, 1).entries()) {
      for (const [kind, { data }] of [keys, values].entries()) {
        for (const at of data.keys()) data[at] = ((at * (2 * layer + kind + 3)) % 251) - 128;
      }
    }
    from.advance(1, 20);
    const to = filledRow(60);
    to.restore(0, 8, read(from, 1, 0, 8));
    to.restore(0, 12, read(from, 1, 8, 12));
    expect(to.length(0)).toBe(20);
    expect(read(to, 0, 0, 20)).toEqual(read(from, 1, 0, 20));
  });
});
