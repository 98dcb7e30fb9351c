import { type Graph, int, type Value } from './graph.js';
import type { LinearLayer } from './linear-layer.js';
import type { Projection } from './projection.js';
import { quantizeChannels } from './quantize.js';

/** Unsigned activations times signed weights is what VNNI multiplies. This stands for zero in the activations. */
const zeroPoint = 128;

export const int8Projection: Projection = {
  async project(graph: Graph, rows: Value, layer: LinearLayer): Promise<Value> {
    const { name, outputs, inputs, weight, bias } = layer;
    const quantized = quantizeChannels(weight, outputs, inputs);
    const [integers, scale] = quantizeRows(graph, rows);
    const product = graph.node('com.microsoft.MatMulIntegerToFloat', [
      integers,
      await graph.weight(`${name}.weight`, [inputs, outputs], quantized.values),
      graph.scalar(1),
      await graph.weight(`${name}.scales`, [outputs], quantized.scales),
      graph.byte('uint8', zeroPoint),
    ]);
    const scaled = graph.node('Mul', [product, scale]);
    return bias ? graph.node('Add', [scaled, await graph.weight(`${name}.bias`, [outputs], bias)]) : scaled;
  },
};

function quantizeRows(graph: Graph, rows: Value): [integers: Value, scale: Value] {
  const largest = graph.node('ReduceMax', [graph.node('Abs', [rows]), graph.shape(1)]);
  const scale = graph.node('Add', [graph.node('Mul', [largest, graph.scalar(1 / 127)]), graph.scalar(1e-30)]);
  const flat = graph.node('Squeeze', [scale, graph.shape(1)]);
  const zeros = graph.node('Expand', [graph.byte('uint8', zeroPoint), graph.node('Shape', [flat])]);
  const integers = graph.node('QuantizeLinear', [rows, flat, zeros], { axis: int(0) });
  return [integers, scale];
}
