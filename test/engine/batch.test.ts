import { describe, expect, it } from 'vitest';
import { BatchBuilder } from '../../src/engine/batch.js';

describe('BatchBuilder', () => {
  it('places a decode step: each row at its own length', () => {
    const batch = new BatchBuilder().build([
      { cached: 3, tokens: [11] },
      { cached: 1, tokens: [12] },
    ]);
    expect(batch).toMatchObject({ rows: 2, width: 1 });
    expect([...batch.inputIds]).toEqual([11n, 12n]);
    expect([...batch.wanted]).toEqual([0n, 1n]);
    expect([...batch.lengths]).toEqual([3, 1]);
    expect([...batch.longest]).toEqual([4]);
  });

  it('pads short rows of a first prefill at the end, and counts the padding as positions', () => {
    const batch = new BatchBuilder().build([
      { cached: 0, tokens: [5, 6, 7] },
      { cached: 0, tokens: [8] },
    ]);
    expect([...batch.inputIds]).toEqual([5n, 6n, 7n, 8n, 0n, 0n]);
    expect([...batch.wanted]).toEqual([2n, 3n]);
    expect([...batch.lengths]).toEqual([2, 2]);
    expect([...batch.longest]).toEqual([3]);
  });

  it('places a later part of a prompt behind what is cached', () => {
    const batch = new BatchBuilder().build([{ cached: 2, tokens: [5, 6] }]);
    expect([...batch.wanted]).toEqual([1n]);
    expect([...batch.lengths]).toEqual([3]);
    expect([...batch.longest]).toEqual([4]);
  });

  it('wants the logits of as many of the last tokens of a row as it is told', () => {
    const builder = new BatchBuilder();
    expect([...builder.build([{ cached: 2, tokens: [5, 6, 7], wanted: 3 }]).wanted]).toEqual([0n, 1n, 2n]);
    const batch = builder.build([
      { cached: 0, tokens: [5, 6, 7], wanted: 2 },
      { cached: 0, tokens: [8, 9] },
    ]);
    expect([...batch.wanted]).toEqual([1n, 2n, 4n]);
  });

  it('wants all logits of the tokens of a row, by their place among those wanted, unless it is told not to', () => {
    const builder = new BatchBuilder();
    const batch = builder.build([
      { cached: 0, tokens: [5, 6], whole: false },
      { cached: 0, tokens: [7, 8, 9], wanted: 2 },
      { cached: 0, tokens: [4], whole: false },
      { cached: 0, tokens: [4], whole: true },
    ]);
    expect([...batch.whole]).toEqual([1n, 2n, 4n]);
    expect([...builder.build([{ cached: 3, tokens: [1], whole: false }]).whole]).toEqual([]);
  });

  it('wants as many of the largest logits as the row that wants the most', () => {
    const builder = new BatchBuilder();
    const rows = [
      { cached: 0, tokens: [5], top: 3 },
      { cached: 0, tokens: [6] },
    ];
    expect(builder.build([...rows, { cached: 0, tokens: [7], top: 8 }]).top).toBe(8);
    expect(builder.build(rows).top).toBe(3);
    expect(builder.build(rows.slice(1)).top).toBe(1);
  });

  it('has an idle row write behind what it holds', () => {
    const batch = new BatchBuilder().build([
      { cached: 5, tokens: [] },
      { cached: 2, tokens: [9] },
    ]);
    expect([...batch.inputIds]).toEqual([0n, 9n]);
    expect([...batch.wanted]).toEqual([0n, 1n]);
    expect([...batch.lengths]).toEqual([5, 2]);
    expect([...batch.longest]).toEqual([6]);
  });

  it('leaves nothing of an earlier, larger batch', () => {
    const builder = new BatchBuilder();
    builder.build([
      { cached: 5, tokens: [1, 2, 3, 4], wanted: 4 },
      { cached: 7, tokens: [5] },
    ]);
    const batch = builder.build([{ cached: 1, tokens: [9] }]);
    expect([...batch.inputIds]).toEqual([9n]);
    expect([...batch.wanted]).toEqual([0n]);
    expect([...batch.lengths]).toEqual([1]);
    expect([...batch.longest]).toEqual([2]);
  });
});
