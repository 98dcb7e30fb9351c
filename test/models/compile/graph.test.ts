import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { OnnxSession } from '../../../src/engine/onnx-session.js';
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

test('of values that are chosen among later only what the chosen one needs is in the graph', async () => {
  let isWanted = false;
  const session = await openGraph((graph) => {
    const x = graph.input('x', 'float32', [1]);
    const known = graph.node('Neg', [x]);
    const unknown = graph.node('NoSuchOperator', [x]);
    const chosen = graph.chooseLater(() => (isWanted ? known : unknown));
    const both = graph.chooseLater(() => chosen);
    graph.output('y', graph.node('Abs', [both]), 'float32', [1]);
    graph.output('z', both, 'float32', [1]);
    isWanted = true;
  });
  const { y, z } = await session.run({ x: floats([1], 4) });
  expect(y!.data).toEqual(Float32Array.of(4));
  expect(z!.data).toEqual(Float32Array.of(-4));
});

test('weights that contribute to no output are left out, and not asked for', async () => {
  const asked: string[] = [];
  const ask = (name: string) => {
    asked.push(name);
    return Float32Array.of(2);
  };
  const session = await openGraph((graph) => {
    const x = graph.input('x', 'float32', [1]);
    const [used, unused] = ['used', 'unused'].map((name) => graph.later(name, [1], () => ask(name)));
    graph.node('Add', [x, unused!]);
    graph.output('y', graph.node('Mul', [x, used!]), 'float32', [1]);
  });
  const { y } = await session.run({ x: floats([1], 4) });
  expect(y!.data).toEqual(Float32Array.of(8));
  expect(new Set(asked)).toEqual(new Set(['used']));
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

describe('a choice', () => {
  /** Of two pairs of numbers, made of values that were computed before, and of others that are in the branches. */
  const open = () =>
    openGraph((graph) => {
      const condition = graph.input('condition', 'uint8', [1]);
      const x = graph.input('x', 'float32', ['N']);
      const isTrue = graph.node('Cast', [condition], { to: int(9) });
      const outer = graph.node('Neg', [x]);
      const [chosen, which] = graph.choose(
        isTrue,
        () => [graph.node('Mul', [graph.node('Abs', [outer]), graph.scalar(10)]), graph.node('Neg', [outer])],
        // Fails where x is shorter: it must not be computed when it is not chosen.
        () => [graph.node('Gather', [outer, graph.shape(7)]), graph.node('Abs', [outer])],
      );
      graph.output('y', graph.node('Add', [chosen!, graph.scalar(1)]), 'float32', ['M']);
      graph.output('z', which!, 'float32', ['N']);
    });
  const byte = (value: number) => ({ type: 'uint8' as const, data: Uint8Array.of(value), dims: [1] });

  test('gives what its branch gives, which sees the values around it', async () => {
    const session = await open();
    const x = floats([8], 1, -2, 3, 4, 5, 6, 7, 8);
    const whenTrue = await session.run({ condition: byte(1), x });
    expect(whenTrue.y!.data).toEqual(Float32Array.of(11, 21, 31, 41, 51, 61, 71, 81));
    expect(whenTrue.z!.data).toEqual(x.data);
    const whenFalse = await session.run({ condition: byte(0), x });
    expect(whenFalse.y!.data).toEqual(Float32Array.of(-7));
    expect(whenFalse.z!.data).toEqual(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
  });

  test('computes nothing of the other branch', async () => {
    const session = await open();
    const x = floats([2], 1, -2);
    expect((await session.run({ condition: byte(1), x })).y!.data).toEqual(Float32Array.of(11, 21));
    await expect(session.run({ condition: byte(0), x })).rejects.toThrow(/Gather/);
  });

  test('keeps what only its branches use, and reads outputs by the names they have outside', async () => {
    const session = await openGraph((graph) => {
      const condition = graph.input('condition', 'uint8', [1]);
      const x = graph.input('x', 'float32', [1]);
      const doubled = graph.node('Add', [x, x]);
      graph.output('doubled', doubled, 'float32', [1]);
      const isTrue = graph.node('Cast', [condition], { to: int(9) });
      const inner = graph.node('Neg', [x]);
      const [y] = graph.choose(
        isTrue,
        () => [graph.node('Add', [doubled, inner])],
        () => [graph.node('Sub', [doubled, inner])],
      );
      graph.output('y', y!, 'float32', [1]);
    });
    const run = async (value: number) => await session.run({ condition: byte(value), x: floats([1], 5) });
    expect((await run(1)).y!.data).toEqual(Float32Array.of(5));
    expect((await run(0)).y!.data).toEqual(Float32Array.of(15));
    expect((await run(0)).doubled!.data).toEqual(Float32Array.of(10));
  });
});

test('numbers that come later are those of when the graph is encoded, in branches too', async () => {
  let number = 1;
  const session = await openGraph((graph) => {
    const x = graph.input('x', 'float32', [2]);
    const weight = graph.later('weight', [2], () => Float32Array.of(number, -number));
    const leaky = () => [graph.node('LeakyRelu', [graph.node('Mul', [x, weight])], { alpha: float(0.5) })];
    const isTrue = graph.node('Cast', [graph.shape(1)], { to: int(9) });
    graph.output('y', graph.choose(isTrue, leaky, leaky)[0]!, 'float32', [2]);
    number = 5;
  });
  const { y } = await session.run({ x: floats([2], 2, 3) });
  expect(y!.data).toEqual(Float32Array.of(10, -7.5));
});

test('a graph is encoded with other outputs, and again with its own', async () => {
  const folder = await temporaryFolder();
  const data = await ExternalData.create(join(folder, 'weights'));
  const graph = new Graph(data, 'weights');
  const x = graph.input('x', 'float32', [1]);
  const inner = graph.node('Neg', [x]);
  graph.output('y', graph.node('NoSuchOperator', [inner]), 'float32', [1]);
  const before = graph.encode();
  const measured = graph.encode([{ name: 'inner', value: inner, type: 'float32', dims: [1] }]);
  expect(graph.encode()).toEqual(before);
  await data.close();
  const path = join(folder, 'measured.onnx');
  await writeFile(path, measured);
  const session = await OnnxSession.open(path, { threads: 1 });
  onTestFinished(() => session.close());
  expect(session.outputNames).toEqual(['inner']);
  expect((await session.run({ x: floats([1], 4) })).inner!.data).toEqual(Float32Array.of(-4));
});
