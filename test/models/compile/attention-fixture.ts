import { BatchBuilder } from '../../../src/engine/batch.js';
import { decoderFeeds } from '../../../src/engine/onnx-decoder-runner.js';
import { AttentionGraph } from '../../../src/models/compile/attention-graph.js';
import type { DecoderConfig } from '../../../src/models/compile/checkpoint.js';
import { StateScales } from '../../../src/models/compile/state-scales.js';
import type { KvFormat } from '../../../src/models/manifest.js';
import { openGraph } from './graph-fixture.js';

/** One sequence of a run. */
export interface AttentionRow {
  /** What is cached of it, [kvHeads * headSize] each. */
  readonly keys: readonly ArrayLike<number>[];
  readonly values: readonly ArrayLike<number>[];
  /** Queries, keys and values of its new positions, (heads + 2 * kvHeads) * headSize each. */
  readonly packed: readonly ArrayLike<number>[];
}

export interface AttentionOptions {
  readonly config: DecoderConfig;
  readonly kvFormat: KvFormat;
  /** Weights of the norms of queries and keys, for a model that has them. */
  readonly norms?: Readonly<Record<'q_norm' | 'k_norm', Float32Array>>;
}

/** A layer's attention, and what it computes by row and new position. */
export async function openAttention({ config, kvFormat, norms }: AttentionOptions) {
  const { heads, kvHeads, headSize } = config;
  const [width, kvWidth] = [heads * headSize, kvHeads * headSize];
  const inBytes = kvFormat === 'int8';
  const scales = inBytes ? new StateScales(config) : undefined;
  const fill = (length: number) => new Float32Array(length).fill(2);
  scales?.set([{ key: fill(kvWidth), value: fill(kvWidth), mixed: fill(width) }]);
  const session = await openGraph(async (graph) => {
    const ids = graph.input('input_ids', 'int64', ['B', 'S']);
    graph.input('wanted', 'int64', ['W']);
    graph.input('top', 'int64', [1]);
    const packed = graph.input('packed', 'float32', ['R', width + 2 * kvWidth]);
    const tensors = {
      read: async (name: string) => norms![name.split('.').at(-2) as 'q_norm' | 'k_norm'].slice(),
    };
    const attention = await AttentionGraph.create({ graph, config, tensors, ids, scales });
    graph.output('mixed', await attention.attend(0, packed), 'float32', ['R', width]);
    graph.output('key', attention.measured[0]!.key, 'float32', ['B', 'S', kvWidth]);
  });

  /**
   * @param capacity T
   * @param unused what stands in the places of the cache that no row uses
   */
  async function run(rows: readonly AttentionRow[], capacity: number, unused = 0) {
    const placeOf = (row: number, position: number, at: number) =>
      ((row * kvHeads + Math.floor(at / headSize)) * capacity + position) * headSize + (at % headSize);
    const tensor = (part: 'keys' | 'values') => {
      const size = rows.length * kvWidth * capacity;
      const data = (inBytes ? new Int8Array(size) : new Float32Array(size)).fill(unused);
      for (const [row, { [part]: positions }] of rows.entries()) {
        for (const [position, numbers] of positions.entries()) {
          for (let at = 0; at < kvWidth; at++) data[placeOf(row, position, at)] = numbers[at]!;
        }
      }
      return { data, dims: [rows.length, kvHeads, capacity, headSize] };
    };
    const inputs = new BatchBuilder().build(
      rows.map(({ keys, packed }) => ({ cached: keys.length, tokens: new Int32Array(packed.length) })),
    );
    const data = Float32Array.from(
      rows.flatMap(({ packed }) => packed.flatMap((numbers) => Array.from(numbers))),
    );
    const cache = { keys: tensor('keys'), values: tensor('values') };
    const outputs = await session.run({
      ...decoderFeeds({ ...inputs, cache: [cache] }),
      packed: { type: 'float32', data, dims: [rows.length * inputs.width, width + 2 * kvWidth] },
    });
    const byPosition = (name: string, elements: number) =>
      rows.map((_, row) =>
        Array.from({ length: inputs.width }, (__, position) => {
          const from = (row * inputs.width + position) * elements;
          return Array.from((outputs[name]!.data as Float32Array).subarray(from, from + elements));
        }),
      );
    /** By row, what the cache holds of its positions, cached and new. */
    const held = (name: string) =>
      rows.map(({ keys, packed }, row) =>
        Array.from({ length: keys.length + packed.length }, (_, position) =>
          Array.from({ length: kvWidth }, (__, at) =>
            Number(outputs[name]!.data[placeOf(row, position, at)]),
          ),
        ),
      );
    return {
      mixed: byPosition('mixed', width),
      key: byPosition('key', kvWidth),
      keys: held('present.0.key'),
      values: held('present.0.value'),
      type: outputs['present.0.key']!.type,
    };
  }
  return { run };
}
