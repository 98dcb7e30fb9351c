import type { EncoderConfig } from './checkpoint.js';
import { float32Projection } from './float32-projection.js';
import { type Graph, int, type Value } from './graph.js';
import { readLinear, type Tensors } from './linear-layer.js';
import type { Rows } from './projection.js';

interface Source {
  readonly tensors: Tensors;
  readonly config: EncoderConfig;
}

/**
 * The relevance logit of each sequence, from its first token: BERT's pooler and classifier, or the two layers of
 * XLM-RoBERTa's classification head, which compute the same. They are small and stay in float32.
 * @param rows the last layer's of those tokens, [B, hiddenSize]
 * @returns [B, 1]
 */
export async function addClassifier(graph: Graph, rows: Rows, { tensors, config }: Source): Promise<Value> {
  const bert = config.architecture === 'bert';
  const inputs = config.hiddenSize;
  const dense = await readLinear(tensors, {
    name: 'pooler',
    inputs,
    parts: [{ tensor: bert ? `pooler.dense` : 'classifier.dense', outputs: inputs }],
    bias: true,
  });
  const hidden = await float32Projection.project(graph, rows, dense);
  const pooled = graph.node('Tanh', [hidden]);
  const classifier = await readLinear(tensors, {
    name: 'classifier',
    inputs,
    parts: [{ tensor: bert ? 'classifier' : 'classifier.out_proj', outputs: 1 }],
    bias: true,
  });
  return float32Projection.project(graph, { ...rows, value: pooled }, classifier);
}

/**
 * The mean of a sequence's token states, padding left out, scaled to length 1.
 * @param states [B, S, hiddenSize]
 * @param mask int64 [B, S]
 * @returns [B, hiddenSize]
 */
export function addMeanPooling(graph: Graph, states: Value, mask: Value): Value {
  const weights = graph.node('Unsqueeze', [graph.cast(mask, 'float32'), graph.shape(1)]);
  // The length of the mean does not matter: only its direction is kept.
  const sum = graph.node('Squeeze', [graph.node('MatMul', [weights, states]), graph.shape(1)]);
  return graph.node('LpNormalization', [sum], { axis: int(-1), p: int(2) });
}
