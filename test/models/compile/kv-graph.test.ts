import { expect, test } from 'vitest';
import { KvCache } from '../../../src/engine/kv-cache.js';
import type { KvShape } from '../../../src/engine/kv-layer.js';
import type { Tensor } from '../../../src/engine/onnx-session.js';
import { kvGraph } from '../../../src/models/compile/kv-graph.js';
import { openGraph } from './graph-fixture.js';

const shape: KvShape = { layers: 1, kvHeads: 2, headSize: 8, kvFormat: 'int8' };
const { kvHeads, headSize } = shape;
const queries = 3;

/** Numbers without a pattern, about 1 in size. */
function noise(length: number, seed: number): Float32Array {
  return Float32Array.from({ length }, (_, at) => 2 * Math.sin((at + 1) * (at + seed) * 0.7));
}

/** One row of `length` positions in the cache, and the graph's attention over it. */
async function open(length: number) {
  const cache = new KvCache({ shape, slots: 1, contextLength: length, maxBytes: 2 ** 24 });
  cache.fit({ rows: 1, longest: length, limit: length });
  const keys = noise(kvHeads * length * headSize, 3);
  // Their mean is not 0, so that what is lost of the weights shows in the sum.
  const values = noise(kvHeads * length * headSize, 5).map((value) => value + 1);
  const output = { keys: [keys], values: [values] };
  cache.append(output, length, [{ row: 0, outputRow: 0, tokens: length }]);
  const past: Record<string, Tensor> = {};
  for (const { name, data, dims } of cache.view(0, 1)[0]!) {
    past[`past.0.${name}`] = { type: data instanceof Float32Array ? 'float32' : 'uint8', data, dims };
  }
  const session = await openGraph(async (graph) => {
    const attention = kvGraph('int8', { kvHeads, headSize, contextLength: 8192 });
    attention.declare(graph, 0);
    const query = graph.input('queries', 'float32', ['B', kvHeads, 'Q', headSize]);
    const weights = graph.input('weights', 'float32', ['B', kvHeads, 'Q', 'T']);
    graph.output('scores', attention.score(graph, 0, query), 'float32', ['B', kvHeads, 'Q', 'T']);
    graph.output('mixed', attention.mix(graph, 0, weights), 'float32', ['B', kvHeads, 'Q', headSize]);
  });
  /** The cached number as the graph sees it. */
  const seen = (kind: 'key' | 'value', head: number, position: number, element: number) => {
    const scale = past[`past.0.${kind}_scale`]!.data as Float32Array;
    const bytes = past[`past.0.${kind}`]!.data as Uint8Array;
    const at =
      kind === 'key'
        ? (head * headSize + element) * length + position
        : (head * length + position) * headSize + element;
    return (bytes[at]! - 128) * scale[head * length + position]!;
  };
  const run = async (query: Float32Array, weights: Float32Array) => {
    const outputs = await session.run({
      queries: { type: 'float32', data: query, dims: [1, kvHeads, queries, headSize] },
      weights: { type: 'float32', data: weights, dims: [1, kvHeads, queries, length] },
      ...past,
    });
    return { scores: outputs.scores!.data as Float32Array, mixed: outputs.mixed!.data as Float32Array };
  };
  return { run, seen };
}

test('scores are products with the cached keys, but for the rounding of the query', async () => {
  const length = 40;
  const { run, seen } = await open(length);
  const query = noise(kvHeads * queries * headSize, 9);
  const { scores } = await run(query, new Float32Array(kvHeads * queries * length));
  for (let head = 0; head < kvHeads; head++) {
    for (let row = 0; row < queries; row++) {
      const own = query.subarray((head * queries + row) * headSize, (head * queries + row + 1) * headSize);
      const step = Math.max(...own.map(Math.abs)) / 127;
      for (let position = 0; position < length; position++) {
        let score = 0;
        let slack = 0;
        for (const [element, number] of own.entries()) {
          score += number * seen('key', head, position, element);
          slack += (step / 2) * Math.abs(seen('key', head, position, element));
        }
        const got = scores[(head * queries + row) * length + position]!;
        expect(Math.abs(got - score / Math.sqrt(headSize))).toBeLessThan(slack / Math.sqrt(headSize) + 1e-5);
      }
    }
  }
});

test('many small weights beside a large one count in full', async () => {
  const length = 3000;
  const { run, seen } = await open(length);
  // Half of the sum on one position, the other half on all the others alike: each is below a byte's step.
  const weights = Float32Array.from({ length: kvHeads * queries * length }, (_, at) =>
    at % length === 17 ? 0.5 : 0.5 / (length - 1),
  );
  const { mixed } = await run(noise(kvHeads * queries * headSize, 9), weights);
  for (let head = 0; head < kvHeads; head++) {
    for (let element = 0; element < headSize; element++) {
      let sum = 0;
      for (let position = 0; position < length; position++) {
        sum += weights[position]! * seen('value', head, position, element);
      }
      expect(mixed[head * queries * headSize + element]).toBeCloseTo(sum, 2);
    }
  }
});

test('weights and queries of nothing but zeros give zeros', async () => {
  const length = 5;
  const { run } = await open(length);
  const { scores, mixed } = await run(
    new Float32Array(kvHeads * queries * headSize),
    new Float32Array(kvHeads * queries * length),
  );
  expect([...scores, ...mixed].every((number) => number === 0)).toBe(true);
});
