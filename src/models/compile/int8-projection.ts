import { type Graph, int, type Value } from './graph.js';
import type { LinearLayer } from './linear-layer.js';
import type { Projection, Rows } from './projection.js';
import { quantizeChannels } from './quantize.js';

/** What stands for 0 in the activations: the processor's integer products take unsigned times signed bytes. */
const zeroPoint = 128;

/**
 * Signed 8-bit weights, one scale per output, times 8-bit activations, one scale per row: a row is rounded by its own
 * largest magnitude, so its result is the same whatever else is in the batch. Biases stay in float32.
 */
export const int8Projection: Projection = {
  async project(graph: Graph, rows: Rows, layer: LinearLayer): Promise<Value> {
    const { name, outputs, inputs, weight, bias } = layer;
    const { values, scales } = quantizeChannels(weight, outputs, inputs);
    const { integers, scale } = quantizeRows(graph, rows);
    // The operator takes one scale for all activations: the rows' own are multiplied in after it.
    const product = graph.node('com.microsoft.MatMulIntegerToFloat', [
      integers,
      await graph.weight(`${name}.weight`, [inputs, outputs], values),
      graph.scalar(1),
      await graph.weight(`${name}.scales`, [outputs], scales),
      graph.byte(zeroPoint),
    ]);
    const scaled = graph.node('Mul', [product, scale]);
    return bias ? graph.node('Add', [scaled, await graph.weight(`${name}.bias`, [outputs], bias)]) : scaled;
  },
};

/**
 * Rounds each row to 8 bits. A row of zeros has scale 0, and 0 times whatever it is rounded to is right.
 * @returns uint8 [R, width] around the zero point, and float32 [R, 1]
 */
function quantizeRows(graph: Graph, { value, count }: Rows): { integers: Value; scale: Value } {
  const largest = graph.node('ReduceMax', [graph.node('Abs', [value]), graph.shape(1)]);
  const scale = graph.node('Mul', [largest, graph.scalar(1 / 127)]);
  const scales = graph.node('Squeeze', [scale, graph.shape(1)]);
  const zeroPoints = graph.shared(`zero points ${count}`, () =>
    graph.node('Expand', [graph.byte(zeroPoint), count]),
  );
  return { integers: graph.node('QuantizeLinear', [value, scales, zeroPoints], { axis: int(0) }), scale };
}
