import { type CenteredTensors, centerUpdates } from './centered-encoder.js';
import type { EncoderConfig } from './checkpoint.js';
import { float32Projection } from './float32-projection.js';
import { absent, float, type Graph, int, type Value } from './graph.js';
import { type LinearLayerParts, readLinear, type Tensors } from './linear-layer.js';
import type { Projection } from './projection.js';
import type { RowReaches } from './row-reaches.js';

export interface EncoderGraphOptions {
  readonly tensors: Tensors;
  readonly config: EncoderConfig;
  readonly projection: Projection;
  /** Of the rows before each projection. */
  readonly reaches: RowReaches;
  /** Called after each layer with the share of the work that is done, 0..1. */
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
}

/** Whether the graph of such a model takes `token_type_ids`. */
export function takesTokenTypes(config: EncoderConfig): boolean {
  return config.typedPairs && config.tokenTypes > 1;
}

/**
 * Builds a BERT or XLM-RoBERTa encoder that makes one row of each sequence.
 *
 * Inputs, with B sequences padded to S positions: `input_ids`, `attention_mask` (1 for tokens, 0 for padding),
 * `position_ids` and, where `takesTokenTypes` says so, `token_type_ids`: all int64 [B, S].
 *
 * Output: `rows` float32 [B, 1], a cross-encoder's logit, or [B, hiddenSize], a bi-encoder's embedding: the mean over
 * the tokens, at length 1.
 *
 * @throws CheckpointError naming a tensor that is missing or misshapen
 */
export async function buildEncoderGraph(graph: Graph, options: EncoderGraphOptions): Promise<void> {
  const { config, onProgress, signal } = options;
  const steps = config.layers + 2;

  const ids = graph.input('input_ids', 'int64', ['B', 'S']);
  const attentionMask = graph.input('attention_mask', 'int64', ['B', 'S']);
  const build: Build = {
    ...options,
    graph,
    tensors: centerUpdates(config, options.tensors),
    rowShape: graph.node('Concat', [graph.node('Shape', [ids]), graph.shape(config.hiddenSize)], {
      axis: int(0),
    }),
    rowCount: graph.node('Shape', [graph.node('Reshape', [ids, graph.shape(-1)])]),
    keyMask: graph.node('Cast', [attentionMask], { to: int(onnxInt32) }),
  };
  let stream = await addEmbeddings(build, ids);
  onProgress(1 / steps);
  for (let layer = 0; layer < config.layers; layer++) {
    signal.throwIfAborted();
    stream = await addLayer(build, layer, stream);
    onProgress((layer + 2) / steps);
  }
  const rows = await withBias(build, stream);
  const states = graph.node('Reshape', [rows, build.rowShape]);
  if (config.scoring === 'cross-encoder') {
    graph.output('rows', await addClassifier(build, states), 'float32', ['B', 1]);
  } else {
    graph.output('rows', addMeanPooling(graph, states, attentionMask), 'float32', ['B', config.hiddenSize]);
  }
  onProgress(1);
}

/** How many of the numbers before a projection are mixed (`LinearLayer.spread`). */
const spread = 64;

/** `TensorProto.DataType` as `Cast` wants it. */
const onnxFloat32 = 1;
const onnxInt32 = 6;

interface Build extends EncoderGraphOptions {
  readonly graph: Graph;
  readonly tensors: CenteredTensors;
  /** [3]: B, S, hiddenSize */
  readonly rowShape: Value;
  /** [1]: R = B * S, the number of rows, one per token. */
  readonly rowCount: Value;
  /** int32 [B, S] */
  readonly keyMask: Value;
}

/** What a norm leaves, but for its bias. */
interface Stream {
  /** [R = B * S, hiddenSize], one row per token. */
  readonly value: Value;
  readonly norm: string;
}

/** The sum of word, position and token type embeddings, normalized. */
async function addEmbeddings(build: Build, ids: Value): Promise<Stream> {
  const { graph, tensors, config } = build;
  const width = config.hiddenSize;
  const read = (kind: string, rows: number) =>
    tensors.read(`embeddings.${kind}_embeddings.weight`, [rows, width]);

  const words = await graph.weight(
    'words',
    [config.vocabularySize, width],
    await read('word', config.vocabularySize),
  );
  const positions = await read('position', config.positions);
  const types = await read('token_type', config.tokenTypes);
  const positionIds = graph.input('position_ids', 'int64', ['B', 'S']);
  const typed = takesTokenTypes(config);
  // Every token of a model without token types has the first one.
  if (!typed) for (let at = 0; at < positions.length; at++) positions[at]! += types[at % width]!;

  const word = graph.node('Gather', [words, ids]);
  let other = graph.node('Gather', [
    await graph.weight('positions', [config.positions, width], positions),
    positionIds,
  ]);
  if (typed) {
    const typeIds = graph.input('token_type_ids', 'int64', ['B', 'S']);
    const type = await graph.weight('types', [config.tokenTypes, width], types);
    other = graph.node('Add', [other, graph.node('Gather', [type, typeIds])]);
  }
  const norm = 'embeddings.LayerNorm';
  const normed = await addNorm(build, norm, [word, other]);
  return { value: graph.node('Reshape', [normed, graph.shape(-1, width)]), norm };
}

/** One transformer layer with the norms after the sums. */
async function addLayer(build: Build, layer: number, before: Stream): Promise<Stream> {
  const { graph, config } = build;
  const prefix = `encoder.layer.${layer}`;
  const context = await addAttention(build, prefix, layer, before.value);
  const attended = await project(build, context, {
    name: `layer.${layer}.output`,
    inputs: config.hiddenSize,
    parts: [{ tensor: `${prefix}.attention.output.dense`, outputs: config.hiddenSize }],
    bias: true,
  });
  const between = await addToStream(build, `${prefix}.attention.output.LayerNorm`, attended, before);
  const widened = await project(build, between.value, {
    name: `layer.${layer}.up`,
    inputs: config.hiddenSize,
    parts: [{ tensor: `${prefix}.intermediate.dense`, outputs: config.intermediateSize }],
    bias: true,
    spread,
    tolerant: true,
  });
  const activated = graph.node(config.activation === 'gelu' ? 'com.microsoft.Gelu' : 'Relu', [widened]);
  const narrowed = await project(build, activated, {
    name: `layer.${layer}.down`,
    inputs: config.intermediateSize,
    parts: [{ tensor: `${prefix}.output.dense`, outputs: config.hiddenSize }],
    bias: true,
    spread,
  });
  return addToStream(build, `${prefix}.output.LayerNorm`, narrowed, between);
}

/** Full attention within each sequence. [R, hiddenSize] in and out. */
async function addAttention(build: Build, prefix: string, layer: number, rows: Value): Promise<Value> {
  const { graph, config } = build;
  const states: Value[] = [];
  // Not as one layer: to split what comes of it costs more than two more products. What they do to their rows is done
  // once: ONNX Runtime merges nodes that compute the same.
  for (const part of ['query', 'key', 'value']) {
    const projected = await project(build, rows, {
      name: `layer.${layer}.${part}`,
      inputs: config.hiddenSize,
      parts: [{ tensor: `${prefix}.attention.self.${part}`, outputs: config.hiddenSize }],
      bias: true,
      spread,
    });
    states.push(graph.node('Reshape', [projected, build.rowShape]));
  }
  const context = graph.node('com.microsoft.MultiHeadAttention', [...states, absent, build.keyMask], {
    num_heads: int(config.heads),
    mask_filter_value: float(-1e30),
  });
  return graph.node('Reshape', [context, graph.shape(-1, config.hiddenSize)]);
}

/** The stream with the bias of its last norm. */
async function withBias({ graph, tensors, config }: Build, { value, norm }: Stream): Promise<Value> {
  const shape = [config.hiddenSize];
  const bias = await graph.weight(`${norm}.bias`, shape, await tensors.read(`${norm}.bias`, shape));
  return graph.node('Add', [value, bias]);
}

/** Layer norm of the sum of the stream and an update, whose mean is 0. */
async function addToStream(
  build: Build,
  norm: string,
  update: Value,
  { value, norm: last }: Stream,
): Promise<Stream> {
  const { graph, config, tensors } = build;
  const name = `${last}.bias centered`;
  const bias = await graph.weight(name, [config.hiddenSize], await tensors.centeredBias(last));
  const centered = graph.node('Sub', [value, graph.node('ReduceMean', [value, graph.shape(-1)])]);
  return { value: await addNorm(build, norm, [update, centered, bias]), norm };
}

/**
 * Layer norm, but for its bias, of the sum of two values and perhaps a bias, all of mean 0. That makes it an RMS norm, for
 * which ONNX Runtime has a much quicker kernel than for the layer norm.
 */
async function addNorm(
  { graph, tensors, config }: Build,
  norm: string,
  [update, residual, bias]: readonly [Value, Value, Value?],
): Promise<Value> {
  const shape = [config.hiddenSize];
  const weight = await graph.weight(`${norm}.weight`, shape, await tensors.read(`${norm}.weight`, shape));
  return graph.node(
    'com.microsoft.SkipSimplifiedLayerNormalization',
    [update, residual, weight, ...(bias === undefined ? [] : [bias])],
    { epsilon: float(config.normEpsilon) },
  );
}

/**
 * The relevance logit of each sequence, from its first token: BERT's pooler and classifier, or the two layers of
 * XLM-RoBERTa's classification head, which compute the same. They are small and stay in float32.
 * @param states [B, S, hiddenSize]
 * @returns [B, 1]
 */
async function addClassifier(build: Build, states: Value): Promise<Value> {
  const { graph, tensors, config } = build;
  const bert = config.architecture === 'bert';
  const inputs = config.hiddenSize;
  const first = graph.node('Gather', [states, graph.integer(0)], { axis: int(1) });
  const dense = await readLinear(tensors, {
    name: 'pooler',
    inputs,
    parts: [{ tensor: bert ? `pooler.dense` : 'classifier.dense', outputs: inputs }],
    bias: true,
  });
  const count = graph.node('Shape', [first], { end: int(1) });
  const hidden = await float32Projection.project(graph, { value: first, count }, dense);
  const pooled = graph.node('Tanh', [hidden]);
  const classifier = await readLinear(tensors, {
    name: 'classifier',
    inputs,
    parts: [{ tensor: bert ? 'classifier' : 'classifier.out_proj', outputs: 1 }],
    bias: true,
  });
  return float32Projection.project(graph, { value: pooled, count }, classifier);
}

/**
 * The mean of a sequence's token states, padding left out, scaled to length 1.
 * @param states [B, S, hiddenSize]
 * @param mask int64 [B, S]
 * @returns [B, hiddenSize]
 */
function addMeanPooling(graph: Graph, states: Value, mask: Value): Value {
  const weights = graph.node('Unsqueeze', [
    graph.node('Cast', [mask], { to: int(onnxFloat32) }),
    graph.shape(1),
  ]);
  // The length of the mean does not matter: only its direction is kept.
  const sum = graph.node('Squeeze', [graph.node('MatMul', [weights, states]), graph.shape(1)]);
  return graph.node('LpNormalization', [sum], { axis: int(-1), p: int(2) });
}

async function project(build: Build, value: Value, layer: LinearLayerParts): Promise<Value> {
  const rows = build.reaches.rows(layer.name, { value, count: build.rowCount });
  return build.projection.project(build.graph, rows, await readLinear(build.tensors, layer));
}
