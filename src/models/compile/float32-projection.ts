import { type Graph, int, type Value } from './graph.js';
import type { LinearLayer } from './linear-layer.js';
import type { Projection, Rows } from './projection.js';

/** Weights as they are. `Gemm` takes them in the order in which they are published. */
export const float32Projection: Projection = {
  kvFormat: 'float32',

  prepare: (decoder) => decoder,

  async project(graph: Graph, rows: Rows, layer: LinearLayer): Promise<Value> {
    const { name, outputs, inputs, weight, bias } = layer;
    const stored = layer.stored ?? (await graph.weight(`${name}.weight`, [outputs, inputs], weight));
    const operands = [rows.value, stored];
    if (bias) operands.push(await graph.weight(`${name}.bias`, [outputs], bias));
    return graph.node('Gemm', operands, { transB: int(1) });
  },
};
