import type { KvFormat } from '../manifest.js';
import type { DecoderConfig } from './checkpoint.js';
import { float, type Graph, int, ints, type Value } from './graph.js';
import { type KvGraph, kvGraph, scoreAgainst } from './kv-graph.js';
import { type LinearLayerParts, readLinear, type Tensors } from './linear-layer.js';
import type { Projection, Rows } from './projection.js';
import { rotaryCaches } from './rotary.js';

export interface DecoderGraphOptions {
  readonly tensors: Tensors;
  readonly config: DecoderConfig;
  readonly projection: Projection;
  readonly kvFormat: KvFormat;
  /** Whether the norms of the stream leave rows that are even (`Rows.even`). */
  readonly even?: boolean;
  /** Called after each layer with the share of the work that is done, 0..1. */
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Builds a causal language model of the llama family, one graph for prefill and decode. The graph reads the KV cache
 * and returns only the rows to add to it; the caller owns the cache.
 *
 * Inputs, with B sequences, S new positions, T cached ones and G = heads / kvHeads:
 * - `input_ids`, `position_ids`: int64 [B, S]
 * - `mask`: float32 [B, 1, G * S, S + T], added to the attention scores; row g * S + s is new position s, the first
 *   S columns are the new positions, the last T the cached ones. Use a large negative number, not infinity: a row without any finite score
 *   would be NaN, and so would all that attends to it.
 * - `last`: int64 [B], which of the S positions the logits are wanted of
 * - `past.L.*`: what the cache keeps of layer L, by its format (`kv-graph.ts`); T is at least 1
 *
 * Outputs: `logits` float32 [B, vocabularySize]; `new.L.key` (rotated) and `new.L.value` float32
 * [B, kvHeads, S, headSize].
 *
 * @throws CheckpointError naming a tensor that is missing or misshapen
 */
export async function buildDecoderGraph(graph: Graph, options: DecoderGraphOptions): Promise<void> {
  const { config, onProgress, signal } = options;
  const steps = config.layers + 2;

  const { table, rows, ids } = await embed(graph, options);
  const past = kvGraph(options.kvFormat, config);
  const shared = await declareShared(graph, { config, ids, rows, past });
  const build: Build = { ...options, graph, table, past, shared };
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
}

/**
 * The residual stream between two blocks: the sum so far, and what the last block adds to it. Both are rows, one per
 * token: [R = B * S, hiddenSize].
 */
interface Stream {
  readonly residual: Value;
  readonly update?: Value;
}

/** Values that every layer uses. */
interface Shared {
  /** [4]: B, S, heads + 2 * kvHeads, headSize */
  readonly packedShape: Value;
  readonly positions: Value;
  readonly mask: Value;
  /** Rotary caches, [contextLength, headSize / 2]. */
  readonly cosines: Value;
  readonly sines: Value;
  /** [2]: S, T */
  readonly scoreColumns: Value;
  /** [1]: R, the number of rows, one per token. */
  readonly rowCount: Value;
  /** [1]: B */
  readonly sequenceCount: Value;
  /** [B]: of each sequence the row whose logits are wanted. */
  readonly lastRows: Value;
}

interface Build extends DecoderGraphOptions {
  readonly graph: Graph;
  /** The embedding table, [vocabularySize, hiddenSize]. */
  readonly table: Value;
  readonly past: KvGraph;
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

async function declareShared(
  graph: Graph,
  { config, ids, rows, past }: { config: DecoderConfig; ids: Value; rows: Value; past: KvGraph },
): Promise<Shared> {
  const { headSize, heads, kvHeads, contextLength } = config;
  const positions = graph.input('position_ids', 'int64', ['B', 'S']);
  const mask = graph.input('mask', 'float32', ['B', 1, 'GS', 'TS']);
  const last = graph.input('last', 'int64', ['B']);
  for (let layer = 0; layer < config.layers; layer++) past.declare(graph, layer);
  const dimension = (value: Value, axis: number) =>
    graph.node('Shape', [value], { start: int(axis), end: int(axis + 1) });
  const newLength = dimension(ids, 1);
  const cachedLength = graph.node('Sub', [dimension(mask, 3), newLength]);
  const rowCount = dimension(rows, 0);
  const scalar = (value: Value) => graph.node('Squeeze', [value]);
  const firstRows = graph.node('Range', [graph.integer(0), scalar(rowCount), scalar(newLength)]);
  const { cosines, sines } = rotaryCaches(config.rope, headSize, contextLength);
  const cacheShape = [contextLength, headSize / 2];
  return {
    packedShape: graph.node(
      'Concat',
      [graph.node('Shape', [ids]), graph.shape(heads + 2 * kvHeads, headSize)],
      { axis: int(0) },
    ),
    positions,
    mask,
    cosines: await graph.weight('rotary.cosines', cacheShape, cosines),
    sines: await graph.weight('rotary.sines', cacheShape, sines),
    scoreColumns: graph.node('Concat', [newLength, cachedLength], { axis: int(0) }),
    rowCount,
    sequenceCount: dimension(ids, 0),
    lastRows: graph.node('Add', [firstRows, last]),
  };
}

async function addBlock(build: Build, layer: number, stream: Stream): Promise<Stream> {
  const { graph, config, shared } = build;
  const prefix = `model.layers.${layer}`;
  const before = await addNorm(build, `${prefix}.input_layernorm`, stream, shared.rowCount);
  let context = await addAttention(build, layer, before.normed);
  let { residual } = before;
  let count = shared.rowCount;
  if (layer === config.layers - 1) {
    // Nothing attends to what the last layer makes of the other rows.
    context = graph.node('Gather', [context, shared.lastRows]);
    residual = graph.node('Gather', [residual, shared.lastRows]);
    count = shared.sequenceCount;
  }
  const attended = await project(
    build,
    { value: context, count },
    {
      name: `${prefix}.output`,
      inputs: config.heads * config.headSize,
      parts: [{ tensor: `${prefix}.self_attn.o_proj`, outputs: config.hiddenSize }],
    },
  );
  const summed = { residual, update: attended };
  const between = await addNorm(build, `${prefix}.post_attention_layernorm`, summed, count);
  return { residual: between.residual, update: await addFeedForward(build, layer, between.normed) };
}

/** RMS norm of the stream: the normalized rows, and the stream with its update summed in. */
async function addNorm(
  { graph, tensors, config, even = false }: Build,
  tensor: string,
  { residual, update }: Stream,
  count: Value,
): Promise<{ normed: Rows; residual: Value }> {
  const shape = [config.hiddenSize];
  const weight = await graph.weight(tensor, shape, await tensors.read(`${tensor}.weight`, shape));
  const epsilon = float(config.normEpsilon);
  if (update === undefined) {
    const value = graph.node('SimplifiedLayerNormalization', [residual, weight], { axis: int(-1), epsilon });
    return { normed: { value, count, even }, residual };
  }
  const operator = 'com.microsoft.SkipSimplifiedLayerNormalization';
  const [value, sum] = graph.nodes(operator, [update, residual, weight], [0, 3], { epsilon });
  return { normed: { value: value!, count, even }, residual: sum! };
}

/**
 * Grouped-query attention: the queries of the heads that share a key are rows of one matrix, so that keys are never
 * repeated. Cached and new positions are scored apart and meet only in the softmax, because joining the keys and
 * values themselves would copy the cache.
 * @param rows of width hiddenSize
 * @returns [R, heads * headSize]
 */
async function addAttention(build: Build, layer: number, rows: Rows): Promise<Value> {
  const { graph, config, past, shared } = build;
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
  });
  const byPosition = graph.node('Reshape', [packed, shared.packedShape]);
  const byHead = graph.node('Transpose', [byPosition], { perm: ints(0, 2, 1, 3) });
  const [query, key, value] = graph.nodes('Split', [byHead, graph.shape(heads, kvHeads, kvHeads)], 3, {
    axis: int(1),
  });
  const rotated = await addRotary(build, `${prefix}.q_norm`, query!);
  const newKey = await addRotary(build, `${prefix}.k_norm`, key!);
  const newValue = value!;
  const dims = ['B', kvHeads, 'S', headSize];
  graph.output(`new.${layer}.key`, newKey, 'float32', dims);
  graph.output(`new.${layer}.value`, newValue, 'float32', dims);

  const grouped = graph.node('Reshape', [rotated, graph.shape(0, kvHeads, -1, headSize)]);
  // The cached positions come last: how many of them are unused then changes no place of a number that counts, and
  // sums of the same numbers in the same places are the same to the bit, whoever shares the cache.
  const scores = graph.node(
    'Concat',
    [scoreAgainst(graph, grouped, newKey, headSize), past.score(graph, layer, grouped)],
    {
      axis: int(-1),
    },
  );
  const weights = graph.node('Softmax', [graph.node('Add', [scores, shared.mask])], { axis: int(-1) });
  const [newWeights, pastWeights] = graph.nodes('Split', [weights, shared.scoreColumns], 2, {
    axis: int(-1),
  });
  const mixed = graph.node('Add', [
    past.mix(graph, layer, pastWeights!),
    graph.node('MatMul', [newWeights!, newValue]),
  ]);
  const mixedByHead = graph.node('Reshape', [mixed, graph.shape(0, heads, -1, headSize)]);
  const mixedByPosition = graph.node('Transpose', [mixedByHead], { perm: ints(0, 2, 1, 3) });
  return graph.node('Reshape', [mixedByPosition, graph.shape(-1, heads * headSize)]);
}

/** Rotary positions on [B, n, S, headSize], after the norm of each head where the model has one. */
async function addRotary(build: Build, norm: string, states: Value): Promise<Value> {
  const { graph, tensors, config, shared } = build;
  let normed = states;
  if (config.queryKeyNorm) {
    const shape = [config.headSize];
    const weight = await graph.weight(norm, shape, await tensors.read(`${norm}.weight`, shape));
    normed = graph.node('SimplifiedLayerNormalization', [states, weight], {
      axis: int(-1),
      epsilon: float(config.normEpsilon),
    });
  }
  return graph.node('com.microsoft.RotaryEmbedding', [
    normed,
    shared.positions,
    shared.cosines,
    shared.sines,
  ]);
}

/** down(SiLU(gate(x)) * up(x)) */
async function addFeedForward(build: Build, layer: number, rows: Rows): Promise<Value> {
  const { graph, config } = build;
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
  return project(
    build,
    { value: graph.node('Mul', [activated, await half('up')]), count: rows.count },
    {
      name: `${prefix}.down`,
      inputs: intermediateSize,
      parts: [{ tensor: `${prefix}.mlp.down_proj`, outputs: hiddenSize }],
      spiky: true,
    },
  );
}

async function addHead(build: Build, stream: Stream): Promise<void> {
  const { graph, tensors, config, table, shared } = build;
  const { hiddenSize: inputs, vocabularySize: outputs } = config;
  const { normed } = await addNorm(build, 'model.norm', stream, shared.sequenceCount);
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
  graph.output('logits', logits, 'float32', ['B', outputs]);
}

async function project(build: Build, rows: Rows, layer: LinearLayerParts): Promise<Value> {
  return build.projection.project(build.graph, rows, await readLinear(build.tensors, layer));
}

const embeddingTensor = 'model.embed_tokens.weight';
