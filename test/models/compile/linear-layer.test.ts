import { expect, test } from 'vitest';
import { readLinear, type Tensors } from '../../../src/models/compile/linear-layer.js';

const inputs = 4;

/** Every tensor has numbers of its own, the same each time it is read. */
const tensors: Tensors = {
  read(tensor, shape) {
    const length = shape.reduce((product, size) => product * size, 1);
    const seed = [...tensor].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
    return Promise.resolve(Float32Array.from({ length }, (_, at) => Math.sin(seed + 3 * at)));
  },
};
const parts = [
  { tensor: 'query', outputs: 3 },
  { tensor: 'value', outputs: 2 },
];
const layer = { name: 'both', inputs, parts };

function mean(numbers: Float32Array): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

test('layers that share their input are stacked in their order', async () => {
  const { weight, bias, outputs } = await readLinear(tensors, { ...layer, bias: true });
  expect(outputs).toBe(5);
  expect([...weight]).toEqual([
    ...(await tensors.read('query.weight', [3, inputs])),
    ...(await tensors.read('value.weight', [2, inputs])),
  ]);
  expect([...bias!]).toEqual([
    ...(await tensors.read('query.bias', [3])),
    ...(await tensors.read('value.bias', [2])),
  ]);
});

test('a layer without a bias has none', async () => {
  expect(await readLinear(tensors, layer)).not.toHaveProperty('bias');
});

test.each([true, false])('what the inputs lack is in the bias: one of its own %s', async (own) => {
  const lacking = Float32Array.of(0.5, -1, 2, 0.25);
  const plain = await readLinear(tensors, { ...layer, bias: own });
  const { weight, bias } = await readLinear(tensors, { ...layer, bias: own, lacking });
  for (let output = 0; output < plain.outputs; output++) {
    const row = plain.weight.subarray(output * inputs, (output + 1) * inputs);
    const product = lacking.reduce((sum, number, at) => sum + number * row[at]!, 0);
    expect(bias![output]).toBeCloseTo((plain.bias?.[output] ?? 0) + product, 5);
  }
  expect(weight).toEqual(plain.weight);
});

test('whatever a centered layer gives has mean 0, and differs from what it was by the mean', async () => {
  const plain = await readLinear(tensors, { ...layer, bias: true });
  const { weight, bias } = await readLinear(tensors, { ...layer, bias: true, centered: true });
  for (let input = 0; input < inputs; input++) {
    const column = (of: Float32Array) => of.filter((_, at) => at % inputs === input);
    expect(mean(column(weight))).toBeCloseTo(0, 6);
    const average = mean(column(plain.weight));
    for (const [output, number] of column(weight).entries()) {
      expect(number).toBeCloseTo(column(plain.weight)[output]! - average, 6);
    }
  }
  expect(mean(bias!)).toBeCloseTo(0, 6);
  expect(bias![1]! - bias![0]!).toBeCloseTo(plain.bias![1]! - plain.bias![0]!, 6);
});
