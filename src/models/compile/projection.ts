import type { Graph, Value } from './graph.js';
import type { LinearLayer } from './linear-layer.js';

/** How linear layers are stored and multiplied. */
export interface Projection {
  /**
   * Adds `rows` x weight^T + bias to the graph and stores the layer's weights.
   * @param rows float32 [R, inputs], one row per token
   * @returns float32 [R, outputs]; a row depends on its own input row only
   */
  project(graph: Graph, rows: Value, layer: LinearLayer): Promise<Value>;
}
