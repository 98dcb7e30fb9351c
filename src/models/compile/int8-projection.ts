import { absent, type Graph, int, type Value } from './graph.js';
import type { LinearLayer } from './linear-layer.js';
import type { Projection, Rows } from './projection.js';
import { quantizeChannels } from './quantize.js';
import { rotateStream } from './rotated-decoder.js';
import { Rotation } from './rotation.js';

/** What stands for 0 in the activations: the processor's integer products take unsigned times signed bytes. */
const zeroPoint = 128;

/**
 * Signed 8-bit weights, one scale per output, times 8-bit activations, one scale per row: a row is rounded by its own
 * largest magnitude, so its result is the same whatever else is in the batch. Biases stay in float32.
 */
export const int8Projection: Projection = {
  kvFormat: 'int8',

  prepare: rotateStream,

  async project(graph: Graph, rows: Rows, layer: LinearLayer): Promise<Value> {
    const { name, outputs, inputs, weight, bias } = layer;
    const spreadRows = await spread(graph, rows, layer);
    const { values, scales } = quantizeChannels(weight, outputs, inputs);
    const weights = await graph.weight(`${name}.weight`, [inputs, outputs], values);
    const weightScales = await gained(graph, `${name}.scales`, scales, layer);
    const multiply = (integers: Value, scale: Value, ...more: Value[]) =>
      graph.node('com.microsoft.MatMulIntegerToFloat', [
        ...[integers, weights, scale, weightScales, graph.byte(zeroPoint)],
        ...more,
      ]);
    const biases = bias ? [await gained(graph, `${name}.bias`, bias, layer)] : [];
    const byOneScale = (reach: () => number | undefined) => {
      const { scale, integers } = roundRows(graph, spreadRows.value, reach);
      return multiply(integers, scale, ...(bias ? [absent, ...biases] : []));
    };
    const byOwnScales = () => {
      const { integers, scale } = quantizeRows(graph, spreadRows);
      // The operator takes one scale for all activations: the rows' own are multiplied in after it.
      const scaled = graph.node('Mul', [multiply(integers, graph.scalar(1)), scale]);
      return bias ? graph.node('Add', [scaled, ...biases]) : scaled;
    };
    const { reach } = rows;
    if (!reach) return byOwnScales();
    const [one, own] = [byOneScale(reach), byOwnScales()];
    return graph.chooseLater(() => (reach() === undefined ? own : one));
  },
};

/** Numbers of a layer's outputs, with its gains multiplied in where it has any. */
function gained(
  graph: Graph,
  name: string,
  own: Float32Array,
  { gains }: LinearLayer,
): Promise<Value> | Value {
  if (!gains) return graph.weight(name, [own.length], own);
  return graph.later(name, [own.length], () => {
    const factors = gains();
    return own.map((number, output) => number * factors[output]!);
  });
}

/**
 * Rotates rows and weights alike, so that their products stay the same and a spike, which would leave the rest of its row
 * a few steps of the 8 bits, becomes many smaller ones (QuaRot, section 4). So many inputs at a time as the layer says, or
 * as divide them.
 * @returns the rotated rows, or the same where the layer says nothing; its weights are rotated in place
 */
async function spread(graph: Graph, rows: Rows, layer: LinearLayer): Promise<Rows> {
  const { inputs, weight } = layer;
  if (layer.spread === undefined) return rows;
  const size = Math.min(layer.spread, inputs & -inputs);
  const rotation = new Rotation(size);
  rotation.apply(weight);
  const matrix = await graph.sharedWeight(`spread.${size}`, [size, size], () => {
    const identity = Float32Array.from({ length: size * size }, (_, at) => (at % (size + 1) === 0 ? 1 : 0));
    rotation.apply(identity);
    return identity;
  });
  const rotated = graph.node('MatMul', [graph.node('Reshape', [rows.value, graph.shape(-1, size)]), matrix]);
  return { ...rows, value: graph.node('Reshape', [rotated, graph.shape(-1, inputs)]) };
}

/** Rounds rows that layers may share to 8 bits, all by one scale. */
function roundRows(
  graph: Graph,
  rows: Value,
  reach: () => number | undefined,
): { integers: Value; scale: Value } {
  const scale = graph.shared(`scale of ${rows}`, () =>
    graph.later(`scale of ${rows}`, [], () => Float32Array.of((reach() ?? 1) / 127)),
  );
  const integers = graph.shared(`${rows} in 8 bits`, () =>
    graph.node('QuantizeLinear', [rows, scale, graph.byteScalar(zeroPoint)]),
  );
  return { integers, scale };
}

/**
 * Rounds each row to 8 bits. A row of zeros has scale 0, and 0 times whatever it is rounded to is right.
 * @returns uint8 [R, width] around the zero point, and float32 [R, 1]
 */
function quantizeRows(graph: Graph, { value, count, onLargest }: Rows): { integers: Value; scale: Value } {
  const largest = graph.node('ReduceMax', [graph.node('Abs', [value]), graph.shape(1)]);
  onLargest?.(largest);
  const scale = graph.node('Mul', [largest, graph.scalar(1 / 127)]);
  const scales = graph.node('Squeeze', [scale, graph.shape(1)]);
  const zeroPoints = graph.shared(`zero points ${count}`, () =>
    graph.node('Expand', [graph.byte(zeroPoint), count]),
  );
  return { integers: graph.node('QuantizeLinear', [value, scales, zeroPoints], { axis: int(0) }), scale };
}
