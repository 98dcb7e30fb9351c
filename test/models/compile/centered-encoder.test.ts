import { expect, test } from 'vitest';
import { centerUpdates } from '../../../src/models/compile/centered-encoder.js';
import type { Tensors } from '../../../src/models/compile/linear-layer.js';

const width = 4;

/** Every tensor has numbers of its own, the same each time it is read. */
const tensors: Tensors = {
  read(tensor, shape) {
    const length = shape.reduce((product, size) => product * size, 1);
    const seed = [...tensor].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
    return Promise.resolve(Float32Array.from({ length }, (_, at) => Math.sin(seed + 3 * at)));
  },
};
const centered = centerUpdates({ hiddenSize: width }, tensors);

function mean(numbers: ArrayLike<number>): number {
  return Array.from(numbers).reduce((sum, number) => sum + number, 0) / numbers.length;
}

test.each(['word', 'position', 'token_type'])('%s embeddings have mean 0', async (kind) => {
  const table = await centered.read(`embeddings.${kind}_embeddings.weight`, [3, width]);
  for (let row = 0; row < 3; row++) {
    expect(mean(table.subarray(row * width, (row + 1) * width))).toBeCloseTo(0, 6);
  }
});

test.each([
  ['attention.output.dense', width],
  ['output.dense', 6],
])('whatever %s adds has mean 0', async (layer, inputs) => {
  const weight = await centered.read(`encoder.layer.1.${layer}.weight`, [width, inputs]);
  for (let input = 0; input < inputs; input++) {
    expect(mean(weight.filter((_, at) => at % inputs === input))).toBeCloseTo(0, 6);
  }
  expect(mean(await centered.read(`encoder.layer.1.${layer}.bias`, [width]))).toBeCloseTo(0, 6);
});

test.each([
  ['encoder.layer.0.attention.self.query', 'embeddings.LayerNorm'],
  ['encoder.layer.0.intermediate.dense', 'encoder.layer.0.attention.output.LayerNorm'],
  ['encoder.layer.12.attention.self.value', 'encoder.layer.11.output.LayerNorm'],
  ['encoder.layer.12.attention.self.key', 'encoder.layer.11.output.LayerNorm'],
])('%s brings the bias of %s itself', async (layer, norm) => {
  const outputs = 5;
  const weight = await tensors.read(`${layer}.weight`, [outputs, width]);
  const own = await tensors.read(`${layer}.bias`, [outputs]);
  const missing = await tensors.read(`${norm}.bias`, [width]);
  const bias = await centered.read(`${layer}.bias`, [outputs]);
  for (let output = 0; output < outputs; output++) {
    const brought = missing.reduce((sum, number, at) => sum + number * weight[output * width + at]!, 0);
    expect(bias[output]).toBeCloseTo(own[output]! + brought, 5);
  }
  expect(await centered.read(`${layer}.weight`, [outputs, width])).toEqual(weight);
});

test.each(['pooler.dense.bias', 'encoder.layer.3.output.LayerNorm.bias', 'classifier.weight'])(
  '%s is as it was',
  async (tensor) => {
    expect(await centered.read(tensor, [width])).toEqual(await tensors.read(tensor, [width]));
  },
);

test('a bias that is summed has mean 0', async () => {
  const norm = 'encoder.layer.3.output.LayerNorm';
  const bias = await tensors.read(`${norm}.bias`, [width]);
  const average = mean(bias);
  expect(await centered.centeredBias(norm)).toEqual(bias.map((number) => number - average));
});
