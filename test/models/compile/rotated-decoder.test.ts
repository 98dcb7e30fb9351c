import { expect, test } from 'vitest';
import type { DecoderConfig } from '../../../src/models/compile/checkpoint.js';
import { buildDecoderGraph } from '../../../src/models/compile/decoder-graph.js';
import { float32Projection } from '../../../src/models/compile/float32-projection.js';
import { rotateStream } from '../../../src/models/compile/rotated-decoder.js';
import { RowReaches } from '../../../src/models/compile/row-reaches.js';
import { extend, openFixture } from './compiled-fixture.js';
import { openGraph } from './graph-fixture.js';

test.each(['llama-tied', 'llama3-rope', 'qwen2-bias', 'qwen3-qknorm'])(
  '%s with a rotated stream has the same logits and the same cache',
  async (name) => {
    const checkpoint = await openFixture(`decoder/${name}`);
    const config = checkpoint.config as DecoderConfig;
    const run = async (source: Parameters<typeof rotateStream>[0]) => {
      const session = await openGraph(async (graph) => {
        await buildDecoderGraph(graph, {
          ...source,
          projection: float32Projection,
          reaches: new RowReaches(),
          onProgress: () => {},
          signal: new AbortController().signal,
        });
      });
      return extend(
        { session, shape: { ...config, kvFormat: 'float32', decodeWidth: 1 } },
        [1, 85, 91, 293, 20, 33],
      );
    };
    const plain = await run({ config, tensors: checkpoint });
    const rotated = await run(rotateStream({ config, tensors: checkpoint }));
    for (const [index, logit] of plain.logits.entries()) {
      expect(rotated.logits[index]).toBeCloseTo(logit, 3);
    }
    for (const [layer, planes] of plain.cache.view(0, 1).entries()) {
      for (const part of ['keys', 'values'] as const) {
        const { data } = planes[part];
        const others = rotated.cache.view(0, 1)[layer]![part].data;
        for (const [at, value] of data.entries()) expect(others[at]).toBeCloseTo(value, 3);
      }
    }
  },
);

test('no coordinate of the embeddings stands out once they are rotated', async () => {
  const checkpoint = await openFixture('decoder/llama-tied');
  const config = checkpoint.config as DecoderConfig;
  const { vocabularySize, hiddenSize } = config;
  const tensors = {
    async read(tensor: string, shape: readonly number[]) {
      const values = await checkpoint.read(tensor, shape);
      if (tensor === 'model.embed_tokens.weight') {
        for (let row = 0; row < vocabularySize; row++) values[row * hiddenSize + 5] = 100;
      }
      return values;
    },
  };
  const shape = [vocabularySize, hiddenSize];
  const rotated = await rotateStream({ config, tensors }).tensors.read('model.embed_tokens.weight', shape);
  expect(rotated.reduce((most, value) => Math.max(most, Math.abs(value)), 0)).toBeLessThan(20);
});
