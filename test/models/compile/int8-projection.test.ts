import { expect, test } from 'vitest';
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

/** Runs `rows` [R, inputs] through a layer; one result row for each. */
async function projector(changes: Partial<LinearLayer> = {}, even = false) {
  const session = await openGraph(async (graph) => {
    const value = graph.input('x', 'float32', ['R', inputs]);
    const count = graph.node('Shape', [value], { end: { kind: 'int', value: 1 } });
    const y = await int8Projection.project(graph, { value, count, even }, layer(changes));
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

test('a spike costs the rest of its row no precision where the layer is spiky', async () => {
  const row = noise(inputs, 11);
  row[40] = 300;
  const exact = multiply(row);
  const [plain] = await (await projector())(row);
  const [spread] = await (await projector({ spiky: true }))(row);
  expect(distance(spread!, exact)).toBeLessThan(0.5 * distance(plain!, exact));
});

/** A row of a mean square of 1. */
function evenRow(seed: number): Float32Array {
  const row = noise(inputs, seed);
  const size = norm([...row]) / Math.sqrt(inputs);
  return row.map((value) => value / size);
}

test('even rows are multiplied without a look at them first, bias included', async () => {
  const bias = noise(outputs, 7);
  const rows = [evenRow(11), evenRow(13)];
  const results = await (await projector({ bias }, true))(...rows);
  for (const [index, row] of rows.entries()) {
    const exact = multiply(row).map((value, o) => value + bias[o]!);
    expect(distance(results[index]!, exact) / norm(exact)).toBeLessThan(0.02);
  }
});

test('what is far too large in an even row is cut off, and spoils nothing else', async () => {
  const row = evenRow(11);
  const cut = row.slice();
  row[3] = 50;
  cut[3] = 3.8;
  const project = await projector({}, true);
  expect(await project(row)).toEqual(await project(cut));
});
