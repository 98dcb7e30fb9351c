import { readdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ProfileEvent, profileOperators, sumOperators } from '../../bench/engine/operator-profile.js';

const run = (ts: number): ProfileEvent => ({ cat: 'Session', name: 'model_run', ts, dur: 100 });
const node = (ts: number, dur: number, operator: string, dims: number[]): ProfileEvent => ({
  cat: 'Node',
  name: `${operator}_1_kernel_time`,
  ts,
  dur,
  args: { op_name: operator, input_type_shape: [{ float: dims }], output_type_shape: [] },
});

describe('an operator profile', () => {
  it('tells products with weights from those of heads, and both from the rest', () => {
    const events = [
      run(0),
      node(1, 30, 'MatMulIntegerToFloat', [8, 576]),
      node(2, 10, 'QuantizeLinear', [8, 576]),
      node(3, 20, 'MatMulIntegerToFloat', [8, 3, 3, 64]),
      node(4, 20, 'Softmax', [8, 3, 3, 161]),
      node(5, 20, 'SkipSimplifiedLayerNormalization', [8, 576]),
    ];

    expect(sumOperators(events, 1)).toEqual({ projections: 0.4, attention: 0.4 });
  });

  it('counts the operators of a branch once, and fused attention as attention', () => {
    const events = [
      run(0),
      node(1, 60, 'MatMulIntegerToFloat', [8, 576]),
      node(2, 10, 'RotaryEmbedding', [1, 8, 576]),
      node(3, 30, 'GroupQueryAttention', [1, 8, 576]),
      node(3, 40, 'If', [1]),
    ];

    expect(sumOperators(events, 1)).toEqual({ projections: 0.6, attention: 0.4 });
  });

  it('is of the last runs alone, and of operators alone', () => {
    const events = [
      run(0),
      node(1, 1000, 'MatMul', [8, 576]),
      run(10),
      node(11, 10, 'MatMul', [8, 576]),
      { ...node(11, 500, 'MatMul', [8, 576]), name: 'MatMul_1_fence_before' },
      run(20),
      node(21, 30, 'Softmax', [8, 3, 3, 161]),
    ];

    expect(sumOperators(events, 2)).toEqual({ projections: 0.25, attention: 0.75 });
  });

  it('is read from the file that was written, which is not left behind', async () => {
    let folder = '';
    const shares = await profileOperators(1, async (prefix) => {
      folder = dirname(prefix);
      await writeFile(`${prefix}_today.json`, JSON.stringify([run(0), node(1, 5, 'Gemm', [1, 576])]));
    });

    expect(shares).toEqual({ projections: 1, attention: 0 });
    await expect(readdir(folder)).rejects.toThrow('ENOENT');
  });
});
