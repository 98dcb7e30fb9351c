import { type Graph, int, type Value } from './graph.js';
import { int8Projection } from './int8-projection.js';
import type { LinearLayer } from './linear-layer.js';
import type { Projection, Rows } from './projection.js';
import { blockSize, type FourBitMatrix, quantizeTo4Bits, quantizeTo8Bits } from './quantize-blocks.js';

/** Activations in 8 bits, one scale for each block of a row. */
const accuracyLevel = 4;

/** Below this share of its squares, what rounding changes in a matrix does not matter. */
const exactEnough = 1e-4;

/**
 * Weights in 4 bits, in the blocks of GGUF's own 4-bit formats: such a file loses nothing on the way. Of weights that
 * 4 bits do not hold, those of tolerant layers are rounded to them, and the others to 8 bits in the same blocks.
 */
export const int4Projection: Projection = {
  kvFormat: 'int8',

  // A rotation would take the weights of a 4-bit file off the few values that they have.
  prepare: (decoder) => decoder,

  async project(graph: Graph, rows: Rows, layer: LinearLayer): Promise<Value> {
    const { name, outputs, inputs, bias, gains } = layer;
    if (inputs % blockSize !== 0) return int8Projection.project(graph, rows, layer);
    const rounded = roundTo4Bits(layer);
    const product = rounded
      ? await multiplyBy4Bits(graph, rows, layer, rounded)
      : await multiplyBy8Bits(graph, rows, layer);
    const whole = bias
      ? graph.node('Add', [product, await graph.weight(`${name}.bias`, [outputs], bias)])
      : product;
    return gains ? graph.node('Mul', [whole, graph.later(`${name}.gains`, [outputs], gains)]) : whole;
  },
};

/** The layer's weights in 4 bits; undefined where 4 bits do not hold them and rounding them would cost too much. */
function roundTo4Bits({ weight, outputs, inputs, tolerant }: LinearLayer): FourBitMatrix | undefined {
  // Finding codes takes long, and a few rows tell almost always that it is in vain.
  if (!tolerant && errorOfSample(weight, outputs, inputs) >= exactEnough) return undefined;
  const rounded = quantizeTo4Bits(weight, outputs, inputs);
  return tolerant || rounded.error < exactEnough ? rounded : undefined;
}

const sampleRows = 64;

/** What rounding changes in rows that are spread over the outputs. */
function errorOfSample(weight: Float32Array, outputs: number, inputs: number): number {
  const rows = Math.min(sampleRows, outputs);
  const sample = new Float32Array(rows * inputs);
  for (let row = 0; row < rows; row++) {
    const from = Math.floor((row * outputs) / rows) * inputs;
    sample.set(weight.subarray(from, from + inputs), row * inputs);
  }
  return quantizeTo4Bits(sample, rows, inputs).error;
}

async function multiplyBy4Bits(
  graph: Graph,
  { value }: Rows,
  layer: LinearLayer,
  { codes, scales, offsets }: FourBitMatrix,
): Promise<Value> {
  const { name, outputs, inputs } = layer;
  const blocks = inputs / blockSize;
  const product = graph.node(
    'com.microsoft.MatMulNBits',
    [
      value,
      await graph.weight(`${name}.weight`, [outputs, blocks, blockSize / 2], codes),
      await graph.weight(`${name}.scales`, [outputs, blocks], scales),
    ],
    attributes(layer, 4),
  );
  // The operator's own zero points are whole codes. An offset may be anything, and counts once for each input.
  const inBlocks = graph.node('Reshape', [value, graph.shape(-1, blocks, blockSize)]);
  const sums = graph.node('ReduceSum', [inBlocks, graph.shape(2)], { keepdims: int(0) });
  return graph.node('Gemm', [
    sums,
    await graph.weight(`${name}.offsets`, [blocks, outputs], offsets),
    product,
  ]);
}

async function multiplyBy8Bits(graph: Graph, { value }: Rows, layer: LinearLayer): Promise<Value> {
  const { name, outputs, inputs, weight } = layer;
  const blocks = inputs / blockSize;
  const { codes, scales } = quantizeTo8Bits(weight);
  return graph.node(
    'com.microsoft.MatMulNBits',
    [
      value,
      await graph.weight(`${name}.weight`, [outputs, blocks, blockSize], codes),
      await graph.weight(`${name}.scales`, [outputs, blocks], scales),
    ],
    attributes(layer, 8),
  );
}

function attributes({ inputs, outputs }: LinearLayer, bits: number) {
  return {
    K: int(inputs),
    N: int(outputs),
    bits: int(bits),
    block_size: int(blockSize),
    accuracy_level: int(accuracyLevel),
  };
}
