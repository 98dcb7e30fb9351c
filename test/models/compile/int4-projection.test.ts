import { expect, test } from 'vitest';
import { int4Projection } from '../../../src/models/compile/int4-projection.js';
import type { LinearLayer } from '../../../src/models/compile/linear-layer.js';
import { openGraph } from './graph-fixture.js';

const [inputs, outputs] = [96, 40];

/** Numbers without a pattern, about 1 in size. */
function noise(length: number, seed: number): Float32Array {
  return Float32Array.from({ length }, (_, at) => 2 * Math.sin((at + 1) * (at + seed) * 0.7));
}

/** Weights on 16 values in each block, with the lowest and the highest of them, none of which is zero. */
const onFewValues = Float32Array.from(
  { length: inputs * outputs },
  (_, at) => 0.1 * ((at * 11 + (at >> 5)) % 16) - 0.73,
);

/** Runs `rows` [R, inputs] through a layer; one result row for each. */
async function projector(changes: Partial<LinearLayer> = {}) {
  const layer = { name: 'layer', inputs, outputs, weight: noise(inputs * outputs, 3), ...changes };
  const session = await openGraph(async (graph) => {
    const value = graph.input('x', 'float32', ['R', layer.inputs]);
    const count = graph.node('Shape', [value], { end: { kind: 'int', value: 1 } });
    const y = await int4Projection.project(graph, { value, count }, layer);
    graph.output('y', y, 'float32', ['R', outputs]);
  });
  return async (...rows: Float32Array[]) => {
    const data = Float32Array.from(rows.flatMap((row) => [...row]));
    const { y } = await session.run({ x: { type: 'float32', data, dims: [rows.length, layer.inputs] } });
    return rows.map((_, row) => [...(y!.data as Float32Array).subarray(row * outputs, (row + 1) * outputs)]);
  };
}

function multiply(row: Float32Array, weight: Float32Array): number[] {
  return Array.from({ length: outputs }, (_, o) =>
    row.reduce((sum, value, i) => sum + value * weight[o * row.length + i]!, 0),
  );
}

const norm = (values: readonly number[]) => Math.hypot(...values);
const distance = (a: readonly number[], b: readonly number[]) => norm(a.map((value, at) => value - b[at]!));

async function relativeError(changes: Partial<LinearLayer>): Promise<number> {
  const row = noise(inputs, 11);
  const weight = changes.weight ?? noise(inputs * outputs, 3);
  const [result] = await (await projector(changes))(row);
  return distance(result!, multiply(row, weight)) / norm(multiply(row, weight));
}

test('weights that 4 bits hold are multiplied as they are', async () => {
  expect(await relativeError({ weight: onFewValues })).toBeLessThan(0.01);
});

test('other weights are rounded to 4 bits where the layer is tolerant, and to 8 where it is not', async () => {
  const tolerant = await relativeError({ tolerant: true });
  expect(tolerant).toBeGreaterThan(0.02);
  expect(tolerant).toBeLessThan(0.1);
  expect(await relativeError({})).toBeLessThan(0.01);
});

test.each([
  ['4 bits', { weight: onFewValues }],
  ['8 bits', {}],
])('in %s a row has the same result whatever else is in the batch', async (_, changes) => {
  const project = await projector(changes);
  const row = noise(inputs, 11);
  const others = Array.from({ length: 40 }, (_, at) => noise(inputs, at + 20).map((value) => value * 100));
  const [alone] = await project(row);
  for (const size of [1, 2, 3, 4, 7, 8, 16, 31, 40]) {
    const between = await project(...others.slice(0, size - 1), row, ...others.slice(size));
    expect(between[size - 1]).toEqual(alone);
  }
});

test('a spike costs the rest of its row no precision beyond its block', async () => {
  const row = noise(inputs, 11);
  row[40] = 300;
  const [result] = await (await projector({ weight: onFewValues }))(row);
  const without = (values: Float32Array) => values.map((value, at) => (at >> 5 === 1 ? 0 : value));
  const [rest] = await (await projector({ weight: onFewValues }))(without(row));
  expect(distance(rest!, multiply(without(row), onFewValues))).toBeLessThan(0.05 * norm(rest!));
  expect(distance(result!, multiply(row, onFewValues))).toBeLessThan(0.01 * norm(result!));
});

test('a row of zeros gives the bias', async () => {
  const bias = noise(outputs, 7);
  for (const weight of [onFewValues, noise(inputs * outputs, 3)]) {
    const [result] = await (await projector({ bias, weight }))(new Float32Array(inputs));
    expect(result).toEqual([...bias]);
  }
});

test('inputs that do not divide into blocks are multiplied all the same', async () => {
  const row = noise(72, 11);
  const weight = noise(72 * outputs, 3);
  const exact = multiply(row, weight);
  const [result] = await (await projector({ inputs: 72, weight }))(row);
  expect(distance(result!, exact)).toBeLessThan(0.02 * norm(exact));
});

test('rows that 4 bits hold do not take the others of their matrix along', async () => {
  const weight = onFewValues.slice();
  weight.set(noise(5 * inputs, 3), 30 * inputs);
  expect(await relativeError({ weight })).toBeLessThan(0.01);
});

test.each<[string, Partial<LinearLayer>]>([
  ['4 bits', { weight: onFewValues }],
  ['8 bits', {}],
  ['int8, where inputs do not divide into blocks', { inputs: 72, weight: noise(72 * outputs, 3) }],
])('gains multiply what a layer in %s gives, its bias included', async (_, changes) => {
  const gains = noise(outputs, 17);
  const bias = noise(outputs, 7);
  const row = noise(changes.inputs ?? inputs, 11);
  const [plain] = await (await projector({ ...changes, bias }))(row);
  const [gained] = await (await projector({ ...changes, bias, gains: () => gains }))(row);
  for (const [o, number] of plain!.entries()) expect(gained![o]).toBeCloseTo(number * gains[o]!, 3);
});

test('gains are asked for when the graph is encoded', async () => {
  let gains = new Float32Array(outputs);
  const bias = noise(outputs, 7);
  const session = await openGraph(async (graph) => {
    const value = graph.input('x', 'float32', ['R', inputs]);
    const count = graph.node('Shape', [value], { end: { kind: 'int', value: 1 } });
    const layer = { name: 'layer', inputs, outputs, weight: onFewValues, bias, gains: () => gains };
    graph.output('y', await int4Projection.project(graph, { value, count }, layer), 'float32', [
      'R',
      outputs,
    ]);
    gains = new Float32Array(outputs).fill(3);
  });
  const { y } = await session.run({
    x: { type: 'float32', data: new Float32Array(inputs), dims: [1, inputs] },
  });
  expect(y!.data).toEqual(bias.map((number) => 3 * number));
});
