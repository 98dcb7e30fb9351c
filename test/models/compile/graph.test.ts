import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ExternalData } from '../../../src/models/compile/external-data.js';
import { absent, float, Graph, int, ints } from '../../../src/models/compile/graph.js';
import { temporaryFolder } from '../temporary-folder.js';
import { openGraph } from './graph-fixture.js';

const floats = (dims: number[], ...values: number[]) => ({
  type: 'float32' as const,
  data: Float32Array.from(values),
  dims,
});

test('a graph runs: inputs, attributes of every kind, outputs by name', async () => {
  const session = await openGraph((graph) => {
    const x = graph.input('x', 'float32', ['R', 2]);
    const turned = graph.node('Transpose', [x], { perm: ints(1, 0) });
    const leaky = graph.node('LeakyRelu', [turned], { alpha: float(0.5) });
    graph.output('y', graph.node('Softmax', [leaky], { axis: int(0) }), 'float32', [2, 'R']);
    graph.output('z', leaky, 'float32', [2, 'R']);
  });
  expect(session.inputNames).toEqual(['x']);
  expect(session.outputNames).toEqual(['y', 'z']);
  const { y, z } = await session.run({ x: floats([1, 2], 3, -4) });
  expect(z).toMatchObject({ dims: [2, 1], data: Float32Array.of(3, -2) });
  expect(y!.data[0]).toBeCloseTo(1 / (1 + Math.exp(-5)), 6);
});

test('an operator of another domain is found', async () => {
  const session = await openGraph((graph) => {
    const x = graph.input('x', 'float32', [2, 2]);
    const product = graph.node('com.microsoft.FusedMatMul', [x, x], { transB: int(1), alpha: float(2) });
    graph.output('y', product, 'float32', [2, 2]);
  });
  const { y } = await session.run({ x: floats([2, 2], 1, 2, 3, 4) });
  expect(y!.data).toEqual(Float32Array.of(10, 22, 22, 50));
});

test('weights are the same from the graph file and from the weights file', async () => {
  const small = Float32Array.of(1, 2, 3);
  const large = Float32Array.from({ length: 3000 }, (_, at) => at);
  const session = await openGraph(async (graph) => {
    const x = graph.input('x', 'float32', [1]);
    graph.output('a', graph.node('Add', [x, await graph.weight('small', [3], small)]), 'float32', [3]);
    graph.output('b', graph.node('Add', [x, await graph.weight('large', [3000], large)]), 'float32', [3000]);
    graph.output('c', graph.node('Add', [x, await graph.weight('next', [3000], large)]), 'float32', [3000]);
  });
  const { a, b, c } = await session.run({ x: floats([1], 1) });
  expect(a!.data).toEqual(small.map((value) => value + 1));
  expect(b!.data).toEqual(large.map((value) => value + 1));
  expect(c!.data).toEqual(b!.data);
});

test('nodes that contribute to no output are left out', async () => {
  const session = await openGraph((graph) => {
    const x = graph.input('x', 'float32', [1]);
    graph.node('NoSuchOperator', [graph.node('Abs', [x])]);
    graph.output('y', graph.node('Neg', [x]), 'float32', [1]);
  });
  const { y } = await session.run({ x: floats([1], 4) });
  expect(y!.data).toEqual(Float32Array.of(-4));
});

test('outputs are taken by their places where those between are optional', async () => {
  const session = await openGraph(async (graph) => {
    const x = graph.input('x', 'float32', [1, 2]);
    const ones = await graph.weight('ones', [2], Float32Array.of(1, 1));
    const [normed, sum] = graph.nodes('com.microsoft.SkipSimplifiedLayerNormalization', [x, x, ones], [0, 3]);
    graph.output('normed', normed!, 'float32', [1, 2]);
    graph.output('sum', sum!, 'float32', [1, 2]);
  });
  const { normed, sum } = await session.run({ x: floats([1, 2], 3, 4) });
  expect(sum!.data).toEqual(Float32Array.of(6, 8));
  expect(normed!.data[0]).toBeCloseTo(6 / Math.sqrt(50), 5);
});

test('an absent input takes its default', async () => {
  const session = await openGraph((graph) => {
    const x = graph.input('x', 'float32', [2]);
    graph.output('y', graph.node('Clip', [x, absent, graph.scalar(1)]), 'float32', [2]);
  });
  const { y } = await session.run({ x: floats([2], -5, 5) });
  expect(y!.data).toEqual(Float32Array.of(-5, 1));
});

test('what is shared is made once', async () => {
  const data = await ExternalData.create(join(await temporaryFolder(), 'weights'));
  const graph = new Graph(data, 'weights');
  let made = 0;
  const make = () => `value ${++made}`;
  expect(graph.shared('key', make)).toBe(graph.shared('key', make));
  expect(made).toBe(1);
  expect(graph.shape(1, 2)).toBe(graph.shape(1, 2));
  expect(graph.shape(1, 2)).not.toBe(graph.shape(12));
  await data.close();
});

test('a weight that does not fill its shape is a bug', async () => {
  const data = await ExternalData.create(join(await temporaryFolder(), 'weights'));
  const graph = new Graph(data, 'weights');
  await expect(graph.weight('w', [2, 2], new Float32Array(3))).rejects.toThrow(
    /w has 3 elements.*This is a bug/,
  );
  await data.close();
});
