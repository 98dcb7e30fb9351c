import { describe, expect, test } from 'vitest';
import { int8Projection } from '../../../src/models/compile/int8-projection.js';
import type { LinearLayer } from '../../../src/models/compile/linear-layer.js';
import { quantizeChannels } from '../../../src/models/compile/quantize.js';
import { openGraph } from './graph-fixture.js';

const [inputs, outputs] = [96, 40];

/** Numbers without a pattern, about 1 in size. */
function noise(length: number, seed: number): Float32Array {
  return Float32Array.from({ length }, (_, at) => 2 * Math.sin((at + 1) * (at + seed) * 0.7));
}

const layer = (changes: Partial<LinearLayer> = {}): LinearLayer => ({
  name: 'layer',
  inputs,
  outputs,
  weight: noise(inputs * outputs, 3),
  ...changes,
});

/** Runs `rows` [R, inputs] through a layer; one result row for each. Their reach is known where it is given. */
async function projector(changes: Partial<LinearLayer> = {}, reach?: () => number | undefined) {
  const session = await openGraph(async (graph) => {
    const value = graph.input('x', 'float32', ['R', inputs]);
    const count = graph.node('Shape', [value], { end: { kind: 'int', value: 1 } });
    const y = await int8Projection.project(graph, { value, count, ...(reach && { reach }) }, layer(changes));
    graph.output('y', y, 'float32', ['R', outputs]);
  });
  return async (...rows: Float32Array[]) => {
    const data = Float32Array.from(rows.flatMap((row) => [...row]));
    const { y } = await session.run({ x: { type: 'float32', data, dims: [rows.length, inputs] } });
    return rows.map((_, row) => [...(y!.data as Float32Array).subarray(row * outputs, (row + 1) * outputs)]);
  };
}

function multiply(row: Float32Array): number[] {
  const { weight } = layer();
  return Array.from({ length: outputs }, (_, o) =>
    row.reduce((sum, value, i) => sum + value * weight[o * inputs + i]!, 0),
  );
}

const norm = (values: readonly number[]) => Math.hypot(...values);
const distance = (a: readonly number[], b: readonly number[]) => norm(a.map((value, at) => value - b[at]!));

test('the product is that of the rounded row and the rounded weights', async () => {
  const row = noise(inputs, 11);
  const scale = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127;
  const { values, scales } = quantizeChannels(layer().weight, outputs, inputs);
  const [result] = await (await projector())(row);
  for (let o = 0; o < outputs; o++) {
    let sum = 0;
    for (let i = 0; i < inputs; i++) sum += Math.round(row[i]! / scale) * values[i * outputs + o]!;
    expect(result![o]).toBeCloseTo(sum * scale * scales[o]!, 3);
  }
});

test('the product is near that of the layer', async () => {
  const row = noise(inputs, 11);
  const [result] = await (await projector())(row);
  expect(distance(result!, multiply(row))).toBeLessThan(0.02 * norm(multiply(row)));
});

test('a row has the same result whatever else is in the batch', async () => {
  const project = await projector();
  const row = noise(inputs, 11);
  const large = noise(inputs, 5).map((value) => value * 1000);
  const alone = await project(row);
  const between = await project(large, row, large);
  expect(between[1]).toEqual(alone[0]);
});

test('a row of zeros gives the bias, and nothing that is not a number', async () => {
  const bias = noise(outputs, 7);
  const [result] = await (await projector({ bias }))(new Float32Array(inputs));
  expect(result).toEqual([...bias]);
});

test('a spike costs the rest of its row no precision where inputs are mixed', async () => {
  const row = noise(inputs, 11);
  row[40] = 300;
  const exact = multiply(row);
  const [plain] = await (await projector())(row);
  const [spread] = await (await projector({ spread: 64 }))(row);
  expect(distance(spread!, exact)).toBeLessThan(0.5 * distance(plain!, exact));
});

test('rows of a known reach are multiplied without a look at them first, bias included', async () => {
  const bias = noise(outputs, 7);
  const rows = [noise(inputs, 11), noise(inputs, 13)];
  const results = await (await projector({ bias }, () => 2))(...rows);
  for (const [index, row] of rows.entries()) {
    const exact = multiply(row).map((value, o) => value + bias[o]!);
    expect(distance(results[index]!, exact) / norm(exact)).toBeLessThan(0.02);
  }
});

test('what is beyond the reach of its rows is cut off, and spoils nothing else', async () => {
  const row = noise(inputs, 11);
  const cut = row.slice();
  row[3] = 50;
  cut[3] = 2;
  const project = await projector({}, () => 2);
  expect(await project(row)).toEqual(await project(cut));
});

test('the reach is asked for when the graph is encoded', async () => {
  let reach = 1e6;
  const session = openGraph(async (graph) => {
    const value = graph.input('x', 'float32', ['R', inputs]);
    const count = graph.node('Shape', [value], { end: { kind: 'int', value: 1 } });
    const y = await int8Projection.project(graph, { value, count, reach: () => reach }, layer());
    graph.output('y', y, 'float32', ['R', outputs]);
    reach = 2;
  });
  const row = noise(inputs, 11);
  const { y } = await (await session).run({ x: { type: 'float32', data: row, dims: [1, inputs] } });
  expect(distance([...(y!.data as Float32Array)], multiply(row)) / norm(multiply(row))).toBeLessThan(0.02);
});

test('layers that share rows of a known reach round them once', async () => {
  const session = await openGraph(async (graph) => {
    const value = graph.input('x', 'float32', ['R', inputs]);
    const count = graph.node('Shape', [value], { end: { kind: 'int', value: 1 } });
    const rows = { value, count, reach: () => 2 };
    const first = await int8Projection.project(graph, rows, layer({ name: 'first' }));
    const second = await int8Projection.project(graph, rows, layer({ name: 'second' }));
    graph.output('y', first, 'float32', ['R', outputs]);
    graph.output('z', second, 'float32', ['R', outputs]);
    const rounded = Buffer.from(graph.encode())
      .toString('latin1')
      .match(/QuantizeLinear_\d+:0/g);
    expect(new Set(rounded).size).toBe(1);
  });
  const { y, z } = await session.run({ x: { type: 'float32', data: noise(inputs, 11), dims: [1, inputs] } });
  expect(y!.data).toEqual(z!.data);
});

describe.each([
  ['of a known reach', () => 2],
  ['that are looked at first', undefined],
])('gains on rows %s', (_, reach) => {
  test.each([
    ['with a bias', noise(outputs, 7)],
    ['without one', undefined],
  ])('multiply what the layer gives, %s', async (__, bias) => {
    const gains = noise(outputs, 17).map((gain) => 10 * gain);
    const own = bias ? { bias } : {};
    const row = noise(inputs, 11);
    const [plain] = await (await projector(own, reach))(row);
    const [gained] = await (await projector({ ...own, gains: () => gains }, reach))(row);
    for (const [o, number] of plain!.entries()) expect(gained![o]).toBeCloseTo(number * gains[o]!, 2);
  });
});

test.each([
  ['mixed inputs', { spread: 64 }],
  ['others', {}],
])('rows whose reach turns out not to be known are rounded each by its own: %s', async (_, changes) => {
  const rows = [noise(inputs, 11), noise(inputs, 5).map((number) => 100 * number)];
  const own = await (await projector(changes))(...rows);
  expect(await (await projector(changes, () => undefined))(...rows)).toEqual(own);
});

test('mixed inputs of a known reach are rounded by it once they are mixed', async () => {
  const row = noise(inputs, 11);
  const exact = multiply(row);
  const near = async (reach: number) => {
    const [result] = await (await projector({ spread: 64 }, () => reach))(row);
    return distance(result!, exact) / norm(exact);
  };
  expect(await near(6)).toBeLessThan(0.03);
  expect(await near(0.5)).toBeGreaterThan(0.3);
});

test('the largest magnitude of each row is told where it is asked for', async () => {
  const session = await openGraph(async (graph) => {
    const value = graph.input('x', 'float32', ['R', inputs]);
    const count = graph.node('Shape', [value], { end: { kind: 'int', value: 1 } });
    const onLargest = (largest: string) => graph.output('largest', largest, 'float32', ['R', 1]);
    await int8Projection.project(graph, { value, count, onLargest, reach: () => 1 }, layer());
  });
  const rows = Float32Array.from([...noise(inputs, 11), ...noise(inputs, 5).map((number) => -3 * number)]);
  const { largest } = await session.run({ x: { type: 'float32', data: rows, dims: [2, inputs] } });
  const expected = [rows.subarray(0, inputs), rows.subarray(inputs)].map((row) =>
    Math.max(...row.map(Math.abs)),
  );
  expect(largest!.data).toEqual(Float32Array.from(expected));
});

test('gains are asked for when the graph is encoded', async () => {
  let gains = new Float32Array(outputs);
  const session = await openGraph(async (graph) => {
    const value = graph.input('x', 'float32', ['R', inputs]);
    const count = graph.node('Shape', [value], { end: { kind: 'int', value: 1 } });
    const gained = layer({ bias: noise(outputs, 7), gains: () => gains });
    const y = await int8Projection.project(graph, { value, count }, gained);
    graph.output('y', y, 'float32', ['R', outputs]);
    gains = new Float32Array(outputs).fill(3);
  });
  const { y } = await session.run({
    x: { type: 'float32', data: new Float32Array(inputs), dims: [1, inputs] },
  });
  expect(y!.data).toEqual(noise(outputs, 7).map((bias) => 3 * bias));
});
