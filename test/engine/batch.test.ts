import { describe, expect, it } from 'vitest';
import { BatchBuilder, masked } from '../../src/engine/batch.js';

/** Rows of a mask as text: `1` for what is seen, `.` for what is not. */
function picture(mask: Float32Array, columns: number): string[] {
  const text = Array.from(mask, (value) => (value === 0 ? '1' : value === masked ? '.' : '?')).join('');
  return text.match(new RegExp(`.{${columns}}`, 'g')) ?? [];
}

describe('BatchBuilder', () => {
  it('masks a decode step: each row sees its own length and its new token', () => {
    const batch = new BatchBuilder(2).build(
      [
        { cached: 3, tokens: [11] },
        { cached: 1, tokens: [12] },
      ],
      4,
    );
    expect(batch).toMatchObject({ rows: 2, width: 1, capacity: 4 });
    expect([...batch.inputIds]).toEqual([11n, 12n]);
    expect([...batch.positionIds]).toEqual([3n, 1n]);
    expect([...batch.last]).toEqual([0n, 0n]);
    expect(picture(batch.mask, 5)).toEqual(['1111.', '1111.', '11...', '11...']);
  });

  it('masks a first prefill: causal, short rows padded at the end', () => {
    const batch = new BatchBuilder(1).build(
      [
        { cached: 0, tokens: [5, 6, 7] },
        { cached: 0, tokens: [8] },
      ],
      0,
    );
    expect([...batch.inputIds]).toEqual([5n, 6n, 7n, 8n, 0n, 0n]);
    expect([...batch.positionIds]).toEqual([0n, 1n, 2n, 0n, 0n, 0n]);
    expect([...batch.last]).toEqual([2n, 0n]);
    expect(picture(batch.mask, 3)).toEqual(['1..', '11.', '111', '1..', '11.', '111']);
  });

  it('masks a later part of a prompt: all that is cached, then causal', () => {
    const batch = new BatchBuilder(2).build([{ cached: 2, tokens: [5, 6] }], 3);
    expect([...batch.positionIds]).toEqual([2n, 3n]);
    expect([...batch.last]).toEqual([1n]);
    expect(picture(batch.mask, 5)).toEqual(['1.11.', '1111.', '1.11.', '1111.']);
  });

  it('lets an idle row see itself alone', () => {
    const batch = new BatchBuilder(1).build(
      [
        { cached: 0, tokens: [] },
        { cached: 2, tokens: [9] },
      ],
      2,
    );
    expect([...batch.inputIds]).toEqual([0n, 9n]);
    expect([...batch.positionIds]).toEqual([0n, 2n]);
    expect([...batch.last]).toEqual([0n, 0n]);
    expect(picture(batch.mask, 3)).toEqual(['1..', '111']);
  });

  it('leaves nothing of an earlier, larger batch', () => {
    const builder = new BatchBuilder(1);
    builder.build([{ cached: 5, tokens: [1, 2, 3, 4] }], 8);
    const batch = builder.build([{ cached: 1, tokens: [9] }], 2);
    expect([...batch.inputIds]).toEqual([9n]);
    expect(picture(batch.mask, 3)).toEqual(['11.']);
  });
});
