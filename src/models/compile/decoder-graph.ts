import { writtenOutput } from '../manifest.js';
import { AttentionGraph, type MeasuredStates } from './attention-graph.js';
import type { DecoderConfig } from './checkpoint.js';
import { float, type Graph, int, type Value } from './graph.js';
import { type LinearLayerParts, readLinear, type Tensors } from './linear-layer.js';
import type { Projection, Rows } from './projection.js';
import type { RowReaches } from './row-reaches.js';
import type { LayerScales, StateScales } from './state-scales.js';

export interface DecoderGraphOptions {
  readonly tensors: Tensors;
  readonly config: DecoderConfig;
  readonly projection: Projection;
  /** Of a cache in bytes; the cache is in float32 when left out. */
  readonly scales?: StateScales | undefined;
  /** Of the rows that are projected down. */
  readonly reaches: RowReaches;
  /** How far the numbers reach that the norms of the stream leave (`Rows.reach`). */
  readonly normReach?: number;
  /** Called after each layer with the share of the work that is done, 0..1. */
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Builds a causal language model of the llama family, one graph for prefill and decode. The caller owns the KV cache,
 * and the graph adds to it.
 *
 * Inputs, with B sequences and S new positions:
 * - `input_ids`: int64 [B, S]
 * - `wanted`: int64 [W], which of the B * S positions the logits are wanted of, counted sequence by sequence
 * - `top`: int64 [1], how many of the largest logits are wanted of each: K
 * - `whole`: int64 [F], which of the W positions all logits are wanted of
 * - those of its attention (`attention-graph.ts`)
 *
 * Outputs: `written`, the first; the largest logits, `top.logits` float32 and `top.tokens` int32, both [W, K], the
 * largest first and of equals the lower token; `logits` float32 [F, vocabularySize], and `likeliest` float32 [F], the
 * log-probability of the likeliest token by them; and the cache with what its attention adds.
 *
 * @returns by layer, the values whose sizes `scales` are made of
 * @throws CheckpointError naming a tensor that is missing or misshapen
 */
export async function buildDecoderGraph(
  graph: Graph,
  options: DecoderGraphOptions,
): Promise<readonly MeasuredStates[]> {
  const { config, onProgress, signal } = options;
  const steps = config.layers + 2;

  const { table, rows, ids } = await embed(graph, options);
  graph.sequenceOutput(writtenOutput, graph.node('SequenceConstruct', [graph.node('Shape', [ids])]));
  const attention = await AttentionGraph.create({ ...options, graph, ids });
  const build: Build = { ...options, graph, table, attention, shared: declareShared(graph, rows) };
  let stream: Stream = { residual: rows };
  onProgress(1 / steps);
  for (let layer = 0; layer < config.layers; layer++) {
    signal.throwIfAborted();
    stream = await addBlock(build, layer, stream);
    onProgress((layer + 2) / steps);
  }
  signal.throwIfAborted();
  await addHead(build, stream);
  onProgress(1);
  return attention.measured;
}

/**
 * The residual stream between two blocks: the sum so far, and what the last block adds to it. Both are rows, one per
 * token: [R = B * S, hiddenSize].
 */
interface Stream {
  readonly residual: Value;
  readonly update?: Value;
}

/** Counts that every layer uses. */
interface Shared {
  /** [1]: R, the number of rows, one per token. */
  readonly rowCount: Value;
  /** [W]: the rows whose logits are wanted. */
  readonly wanted: Value;
  /** [1]: W */
  readonly wantedCount: Value;
}

interface Build extends DecoderGraphOptions {
  readonly graph: Graph;
  /** The embedding table, [vocabularySize, hiddenSize]. */
  readonly table: Value;
  readonly attention: AttentionGraph;
  readonly shared: Shared;
}

async function embed(
  graph: Graph,
  { tensors, config }: DecoderGraphOptions,
): Promise<{ table: Value; ids: Value; rows: Value }> {
  const shape = [config.vocabularySize, config.hiddenSize];
  const table = await graph.weight('embeddings', shape, await tensors.read(embeddingTensor, shape));
  const ids = graph.input('input_ids', 'int64', ['B', 'S']);
  const embedded = graph.node('Gather', [table, ids]);
  return { table, ids, rows: graph.node('Reshape', [embedded, graph.shape(-1, config.hiddenSize)]) };
}

function declareShared(graph: Graph, rows: Value): Shared {
  const wanted = graph.input('wanted', 'int64', ['W']);
  const count = (value: Value) => graph.node('Shape', [value], { start: int(0), end: int(1) });
  return { rowCount: count(rows), wanted, wantedCount: count(wanted) };
}

async function addBlock(build: Build, layer: number, stream: Stream): Promise<Stream> {
  const { graph, config, scales, shared } = build;
  const prefix = `model.layers.${layer}`;
  const before = await addNorm(build, `${prefix}.input_layernorm`, stream, shared.rowCount);
  let context = await addAttention(build, layer, before.normed);
  let { residual } = before;
  let count = shared.rowCount;
  if (layer === config.layers - 1) {
    // Nothing attends to what the last layer makes of the other rows.
    context = graph.node('Gather', [context, shared.wanted]);
    residual = graph.node('Gather', [residual, shared.wanted]);
    count = shared.wantedCount;
  }
  const attended = await project(
    build,
    { value: context, count, ...(scales && { reach: () => scales.layer(layer).mixedReach }) },
    {
      name: `${prefix}.output`,
      inputs: config.heads * config.headSize,
      parts: [{ tensor: `${prefix}.self_attn.o_proj`, outputs: config.hiddenSize }],
      ...(scales && {
        gains: () => new Float32Array(config.hiddenSize).fill(1 / scales.layer(layer).value),
      }),
    },
  );
  const summed = { residual, update: attended };
  const between = await addNorm(build, `${prefix}.post_attention_layernorm`, summed, count);
  return { residual: between.residual, update: await addFeedForward(build, layer, between.normed) };
}

/** RMS norm of the stream: the normalized rows, and the stream with its update summed in. */
async function addNorm(
  { graph, tensors, config, normReach }: Build,
  tensor: string,
  { residual, update }: Stream,
  count: Value,
): Promise<{ normed: Rows; residual: Value }> {
  const shape = [config.hiddenSize];
  const weight = await graph.weight(tensor, shape, await tensors.read(`${tensor}.weight`, shape));
  const epsilon = float(config.normEpsilon);
  const reach = normReach === undefined ? {} : { reach: () => normReach };
  if (update === undefined) {
    const value = graph.node('SimplifiedLayerNormalization', [residual, weight], { axis: int(-1), epsilon });
    return { normed: { value, count, ...reach }, residual };
  }
  const operator = 'com.microsoft.SkipSimplifiedLayerNormalization';
  const [value, sum] = graph.nodes(operator, [update, residual, weight], [0, 3], { epsilon });
  return { normed: { value: value!, count, ...reach }, residual: sum! };
}

/**
 * @param rows of width hiddenSize
 * @returns [R, heads * headSize]
 */
async function addAttention(build: Build, layer: number, rows: Rows): Promise<Value> {
  const { config, scales } = build;
  const { heads, kvHeads, headSize } = config;
  const prefix = `model.layers.${layer}.self_attn`;
  const packed = await project(build, rows, {
    name: `model.layers.${layer}.query_key_value`,
    inputs: config.hiddenSize,
    parts: [
      { tensor: `${prefix}.q_proj`, outputs: heads * headSize },
      { tensor: `${prefix}.k_proj`, outputs: kvHeads * headSize },
      { tensor: `${prefix}.v_proj`, outputs: kvHeads * headSize },
    ],
    bias: config.attentionBias,
    ...(scales && { gains: () => packedGains(config, scales.layer(layer)) }),
  });
  return build.attention.attend(layer, packed);
}

/** Of queries, keys and values; those of queries and keys are in the weights of their norms where there are norms. */
function packedGains(
  { queryKeyNorm, kvHeads, headSize }: DecoderConfig,
  { query, key, value }: LayerScales,
): Float32Array {
  const values = new Float32Array(kvHeads * headSize).fill(value);
  const ones = (gains: Float32Array) => (queryKeyNorm ? gains.map(() => 1) : gains);
  return Float32Array.from([...ones(query), ...ones(key), ...values]);
}

/** down(SiLU(gate(x)) * up(x)) */
async function addFeedForward(build: Build, layer: number, rows: Rows): Promise<Value> {
  const { graph, config, reaches } = build;
  const { hiddenSize, intermediateSize } = config;
  const prefix = `model.layers.${layer}`;
  // Not as one layer: to split what comes of many rows costs more than a second product.
  const half = (name: 'gate' | 'up') =>
    project(build, rows, {
      name: `${prefix}.${name}`,
      inputs: hiddenSize,
      parts: [{ tensor: `${prefix}.mlp.${name}_proj`, outputs: intermediateSize }],
      tolerant: true,
    });
  const activated = graph.node('com.microsoft.QuickGelu', [await half('gate')], { alpha: float(1) });
  const name = `${prefix}.down`;
  const activatedRows = { value: graph.node('Mul', [activated, await half('up')]), count: rows.count };
  // In the last layer too few rows are left to tell how far others would reach.
  const isLast = layer === config.layers - 1;
  return project(build, isLast ? activatedRows : reaches.rows(name, activatedRows), {
    name,
    inputs: intermediateSize,
    parts: [{ tensor: `${prefix}.mlp.down_proj`, outputs: hiddenSize }],
    spread,
  });
}

async function addHead(build: Build, stream: Stream): Promise<void> {
  const { graph, tensors, config, table, shared } = build;
  const { hiddenSize: inputs, vocabularySize: outputs } = config;
  const { normed } = await addNorm(build, 'model.norm', stream, shared.wantedCount);
  const weight = await tensors.read(config.tiedEmbeddings ? embeddingTensor : 'lm_head.weight', [
    outputs,
    inputs,
  ]);
  const layer = { name: 'head', outputs, inputs, weight };
  const logits = await build.projection.project(
    graph,
    normed,
    config.tiedEmbeddings ? { ...layer, stored: table } : layer,
  );
  const [largest, tokens] = graph.nodes('TopK', [logits, graph.input('top', 'int64', [1])], 2);
  graph.output('top.logits', largest!, 'float32', ['W', 'K']);
  graph.output('top.tokens', graph.cast(tokens!, 'int32'), 'int32', ['W', 'K']);
  const whole = graph.node('Gather', [logits, graph.input('whole', 'int64', ['F'])]);
  graph.output('logits', whole, 'float32', ['F', outputs]);
  // All that log-probabilities need of all tokens: an exponential of each takes JavaScript thirty times as long.
  const likeliest = [graph.node('LogSoftmax', [whole]), graph.shape(-1)];
  graph.output('likeliest', graph.node('ReduceMax', likeliest, { keepdims: int(0) }), 'float32', ['F']);
}

async function project(build: Build, rows: Rows, layer: LinearLayerParts): Promise<Value> {
  return build.projection.project(build.graph, rows, await readLinear(build.tensors, layer));
}

/** Mixing 64 of the numbers that are projected down takes twice as long, and the KL divergence to float32 is the same. */
const spread = 32;

const embeddingTensor = 'model.embed_tokens.weight';
