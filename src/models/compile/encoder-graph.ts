import { centerRows } from './center.js';
import type { EncoderConfig } from './checkpoint.js';
import { addClassifier, addMeanPooling } from './encoder-head.js';
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
    every: {
      shape: graph.node('Concat', [graph.node('Shape', [ids]), graph.shape(config.hiddenSize)], {
        axis: int(0),
      }),
      count: graph.node('Shape', [graph.node('Reshape', [ids, graph.shape(-1)])]),
    },
    first: {
      shape: graph.shape(-1, 1, config.hiddenSize),
      count: graph.node('Shape', [ids], { end: int(1) }),
    },
    keyMask: graph.cast(attentionMask, 'int32'),
    ...(config.contextLength > maskedTokens && { isLong: addIsLong(graph, ids, attentionMask) }),
  };
  const judges = config.scoring === 'cross-encoder';
  let stream = await addEmbeddings(build, ids);
  onProgress(1 / steps);
  for (let layer = 0; layer < config.layers; layer++) {
    signal.throwIfAborted();
    // Nothing asks for what the last layer makes of the other tokens.
    const wanted = judges && layer === config.layers - 1 ? firstTokens(build, stream) : stream;
    stream = await addLayer(build, layer, stream, wanted);
    onProgress((layer + 2) / steps);
  }
  const value = await withBias(build, stream);
  const { count, shape } = stream.tokens;
  if (judges) {
    graph.output('rows', await addClassifier(graph, { value, count }, build), 'float32', ['B', 1]);
  } else {
    const pooled = addMeanPooling(graph, graph.node('Reshape', [value, shape]), attentionMask);
    graph.output('rows', pooled, 'float32', ['B', config.hiddenSize]);
  }
  onProgress(1);
}

/** How many of the numbers before a projection are mixed (`LinearLayer.spread`). */
const spread = 64;

/**
 * Up to this many tokens a sequence's scores are all computed at once, with a mask of what is padding. Without a mask ONNX
 * Runtime goes block by block (FlashAttention, Dao et al.), whose memory does not grow with the square of the tokens: up
 * to here that is as quick, and further on quicker. A worker's batches have no more tokens than this, so that a longer
 * sequence runs alone and is always computed in the same way.
 */
export const maskedTokens = 512;

interface Build extends EncoderGraphOptions {
  readonly graph: Graph;
  readonly every: Tokens;
  /** The first one of each sequence. */
  readonly first: Tokens;
  /** int32 [B, S] */
  readonly keyMask: Value;
  /** bool [1]: the sequences are long, and none is padded; left out where they are never long. */
  readonly isLong?: Value;
}

/** Tokens that have a row each. */
interface Tokens {
  /** [3]: B, how many of each sequence, hiddenSize */
  readonly shape: Value;
  /** [1]: R, how many in all. */
  readonly count: Value;
}

interface TokenRows {
  /** [R, width] */
  readonly value: Value;
  readonly tokens: Tokens;
}

/** What a norm leaves, of width hiddenSize, but for its bias: that is in the biases of the layers that read it. */
interface Stream extends TokenRows {
  readonly norm: string;
}

/** The sum of word, position and token type embeddings, normalized. The norm would take their means away in any case. */
async function addEmbeddings(build: Build, ids: Value): Promise<Stream> {
  const { graph, tensors, config } = build;
  const width = config.hiddenSize;
  const read = async (kind: string, rows: number) =>
    centerRows(await tensors.read(`embeddings.${kind}_embeddings.weight`, [rows, width]), width);

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
  return { value: graph.node('Reshape', [normed, graph.shape(-1, width)]), tokens: build.every, norm };
}

/** @returns bool [1] */
function addIsLong(graph: Graph, ids: Value, attentionMask: Value): Value {
  const width = graph.node('Shape', [ids], { start: int(1) });
  const isWide = graph.node('Greater', [width, graph.shape(maskedTokens)]);
  const isFull = graph.cast(graph.node('ReduceMin', [attentionMask], { keepdims: int(0) }), 'bool');
  return graph.node('And', [isWide, isFull]);
}

function firstTokens({ graph, first }: Build, { value, tokens, norm }: Stream): Stream {
  const states = graph.node('Reshape', [value, tokens.shape]);
  return { value: graph.node('Gather', [states, graph.integer(0)], { axis: int(1) }), tokens: first, norm };
}

/**
 * One transformer layer with the norms after the sums.
 * @param wanted those rows of `before` that are wanted of it
 */
async function addLayer(build: Build, layer: number, before: Stream, wanted: Stream): Promise<Stream> {
  const { graph, config } = build;
  const { tokens } = wanted;
  const prefix = `encoder.layer.${layer}`;
  const context = { value: await addAttention(build, layer, before, wanted), tokens };
  const attended = await project(build, context, {
    name: `layer.${layer}.output`,
    inputs: config.hiddenSize,
    parts: [{ tensor: `${prefix}.attention.output.dense`, outputs: config.hiddenSize }],
    bias: true,
    centered: true,
  });
  const between = await addToStream(build, `${prefix}.attention.output.LayerNorm`, attended, wanted);
  const widened = await project(build, between, {
    name: `layer.${layer}.up`,
    inputs: config.hiddenSize,
    parts: [{ tensor: `${prefix}.intermediate.dense`, outputs: config.intermediateSize }],
    bias: true,
    spread,
    tolerant: true,
  });
  const activation = config.activation === 'gelu' ? 'com.microsoft.Gelu' : 'Relu';
  const activated = { value: graph.node(activation, [widened]), tokens };
  const narrowed = await project(build, activated, {
    name: `layer.${layer}.down`,
    inputs: config.intermediateSize,
    parts: [{ tensor: `${prefix}.output.dense`, outputs: config.hiddenSize }],
    bias: true,
    centered: true,
    spread,
  });
  return addToStream(build, `${prefix}.output.LayerNorm`, narrowed, between);
}

/**
 * Attention of the wanted tokens to all of their sequence.
 * @returns [R, hiddenSize], a row for each wanted token
 */
async function addAttention(build: Build, layer: number, before: Stream, wanted: Stream): Promise<Value> {
  const { graph, config } = build;
  const states: Value[] = [];
  // Not as one layer: to split what comes of it costs more than two more products. What they do to their rows is done
  // once: ONNX Runtime merges nodes that compute the same.
  for (const part of ['query', 'key', 'value']) {
    const rows = part === 'query' ? wanted : before;
    const projected = await project(build, rows, {
      name: `layer.${layer}.${part}`,
      inputs: config.hiddenSize,
      parts: [{ tensor: `encoder.layer.${layer}.attention.self.${part}`, outputs: config.hiddenSize }],
      bias: true,
      spread,
    });
    states.push(graph.node('Reshape', [projected, rows.tokens.shape]));
  }
  const attend = (...mask: readonly Value[]) =>
    graph.nodes('com.microsoft.MultiHeadAttention', [...states, ...mask], 1, {
      num_heads: int(config.heads),
      mask_filter_value: float(-1e30),
    });
  const masked = () => attend(absent, build.keyMask);
  const [context] = build.isLong ? graph.choose(build.isLong, () => attend(), masked) : masked();
  return graph.node('Reshape', [context!, graph.shape(-1, config.hiddenSize)]);
}

/** The stream with the bias of its last norm. */
async function withBias(build: Build, { value, norm }: Stream): Promise<Value> {
  const { graph, config } = build;
  const bias = await graph.weight(`${norm}.bias`, [config.hiddenSize], await biasOf(build, norm));
  return graph.node('Add', [value, bias]);
}

/** Layer norm of the sum of the stream and an update, whose mean is 0. */
async function addToStream(
  build: Build,
  norm: string,
  update: Value,
  { value, tokens, norm: last }: Stream,
): Promise<Stream> {
  const { graph, config } = build;
  const shape = [config.hiddenSize];
  const bias = centerRows(await biasOf(build, last), config.hiddenSize);
  const centered = graph.node('Sub', [value, graph.node('ReduceMean', [value, graph.shape(-1)])]);
  const operands = [update, centered, await graph.weight(`${last}.bias centered`, shape, bias)] as const;
  return { value: await addNorm(build, norm, operands), tokens, norm };
}

function biasOf({ tensors, config }: Build, norm: string): Promise<Float32Array> {
  return tensors.read(`${norm}.bias`, [config.hiddenSize]);
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

async function project(
  build: Build,
  { value, tokens, norm }: TokenRows & Partial<Stream>,
  layer: LinearLayerParts,
): Promise<Value> {
  const { graph, tensors, projection, reaches, first } = build;
  const { count } = tokens;
  // One token of each sequence is too few to tell how far others would reach.
  const rows = tokens === first ? { value, count } : reaches.rows(layer.name, { value, count });
  const lacking = norm !== undefined && { lacking: await biasOf(build, norm) };
  return projection.project(graph, rows, await readLinear(tensors, { ...layer, ...lacking }));
}
