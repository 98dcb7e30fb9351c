import { CheckpointError, type DecoderConfig } from './checkpoint.js';
import { float, type Graph, int, ints, laterFloat, type Value } from './graph.js';
import type { Tensors } from './linear-layer.js';
import { rotaryCaches } from './rotary.js';
import type { StateScales } from './state-scales.js';

export interface AttentionGraphOptions {
  readonly graph: Graph;
  readonly config: DecoderConfig;
  readonly tensors: Tensors;
  /** int64 [B, S] */
  readonly ids: Value;
  /** Of a cache in bytes; the cache is in float32 when left out. Queries, keys and values come scaled by them. */
  readonly scales?: StateScales | undefined;
}

/** What stands for 0 in bytes. All are unsigned: products with signed ones saturate on processors without VNNI. */
const zeroPoint = 128;

/** Added to the score of a position that is not there. Finite, so that a row without any score stays a number. */
const masked = -1e9;

/** Values that every layer uses. */
interface Shared {
  /** [3]: B, S, (heads + 2 * kvHeads) * headSize */
  readonly packedShape: Value;
  readonly positions: Value;
  readonly lengths: Value;
  readonly longest: Value;
  /** Rotary caches, [contextLength, headSize / 2]. */
  readonly cosines: Value;
  readonly sines: Value;
  /** bool [1]: whether S is more than 1, or nothing is cached: ONNX Runtime leaves integer products over nothing undefined. */
  readonly isPrefill: Value;
  /** float32 [B, 1, 1, 1 + T], for one new position. */
  readonly mask: Value;
  /** [2]: 1, T */
  readonly scoreColumns: Value;
}

/** Queries, keys and values of the new positions, each [B, S, its heads * headSize]; rotated where that is due. */
interface States {
  readonly query: Value;
  readonly key: Value;
  readonly value: Value;
}

/** What the scales of a layer are made of: its states, and what attention mixes of the values, [R, heads * headSize]. */
export interface MeasuredStates extends States {
  readonly mixed: Value;
}

/**
 * Causal attention of a decoder's layers over the new positions and those that earlier runs left in the cache.
 *
 * Inputs of the graph besides `input_ids`, with B sequences, S new positions and T cached ones:
 * - `position_ids`: int64 [B, S]
 * - `lengths`: int32 [B], the positions of each sequence, cached and new, less one
 * - `longest`: int32 [1], the most positions of a sequence, cached and new
 * - `past.L.key`, `past.L.value`: what the cache holds. In float32 both are [B, kvHeads, T, headSize]; in bytes (uint8)
 *   keys are [B, kvHeads, headSize, T], as the right side of a product wants them. Positions beyond a sequence's own
 *   may hold anything.
 *
 * Output: `new`, of the same type, [layers * 2 * B, S, kvHeads * headSize]: by layer the new keys (rotated), then the
 * new values. One output, since each costs as much as several small operators.
 *
 * Several sequences that have cached positions can be run together only when S is 1: ONNX Runtime's
 * `GroupQueryAttention` takes no others.
 */
export class AttentionGraph {
  readonly #options: AttentionGraphOptions;
  readonly #shared: Shared;
  readonly #measured: MeasuredStates[] = [];

  private constructor(options: AttentionGraphOptions, shared: Shared) {
    this.#options = options;
    this.#shared = shared;
  }

  /** Declares the inputs. @throws CheckpointError when the operators cannot take heads of that size */
  static async create(options: AttentionGraphOptions): Promise<AttentionGraph> {
    const { graph, config, ids, scales } = options;
    const { heads, kvHeads, headSize, contextLength, layers } = config;
    if (headSize % 8 !== 0) {
      throw new CheckpointError(`heads of ${headSize} numbers: what can be served is multiples of 8`);
    }
    const positions = graph.input('position_ids', 'int64', ['B', 'S']);
    const lengths = graph.input('lengths', 'int32', ['B']);
    const longest = graph.input('longest', 'int32', [1]);
    const type = scales ? 'uint8' : 'float32';
    const place = scales ? [headSize, 'T'] : ['T', headSize];
    for (let layer = 0; layer < layers; layer++) {
      graph.input(`past.${layer}.key`, type, ['B', kvHeads, ...place]);
      graph.input(`past.${layer}.value`, type, ['B', kvHeads, 'T', headSize]);
    }
    const cachedLength = graph.node('Shape', ['past.0.value'], { start: int(2), end: int(3) });
    const { cosines, sines } = rotaryCaches(config.rope, headSize, contextLength);
    const cacheShape = [contextLength, headSize / 2];
    const packedWidth = graph.shape((heads + 2 * kvHeads) * headSize);
    const newLength = graph.node('Shape', [ids], { start: int(1), end: int(2) });
    return new AttentionGraph(options, {
      packedShape: graph.node('Concat', [graph.node('Shape', [ids]), packedWidth], { axis: int(0) }),
      positions,
      lengths,
      longest,
      cosines: await graph.weight('rotary.cosines', cacheShape, cosines),
      sines: await graph.weight('rotary.sines', cacheShape, sines),
      isPrefill: graph.node('Greater', [newLength, graph.node('Min', [cachedLength, graph.shape(1)])]),
      mask: addMask(graph, lengths, cachedLength),
      scoreColumns: graph.node('Concat', [graph.shape(1), cachedLength], { axis: int(0) }),
    });
  }

  /** By layer, what is to be measured for the scales. */
  get measured(): readonly MeasuredStates[] {
    return this.#measured;
  }

  /**
   * @param packed float32 [R, (heads + 2 * kvHeads) * headSize]: queries, keys and values of a layer
   * @returns float32 [R, heads * headSize]
   */
  async attend(layer: number, packed: Value): Promise<Value> {
    const { graph, config, scales } = this.#options;
    const { heads, kvHeads, headSize } = config;
    const [query, key, value] = graph.nodes(
      'Split',
      [
        graph.node('Reshape', [packed, this.#shared.packedShape]),
        graph.shape(heads * headSize, kvHeads * headSize, kvHeads * headSize),
      ],
      3,
      { axis: int(2) },
    );
    const prefix = `model.layers.${layer}.self_attn`;
    const states = {
      query: await this.#rotate(query!, heads, `${prefix}.q_norm`, () => scales?.layer(layer).query),
      key: await this.#rotate(key!, kvHeads, `${prefix}.k_norm`, () => scales?.layer(layer).key),
      value: value!,
    };
    const mixed = scales
      ? this.#attendInBytes(layer, states, () => scales.layer(layer).score)
      : this.#grouped(states, `past.${layer}.key`, `past.${layer}.value`);
    this.#measured[layer] = { ...states, mixed };
    return mixed;
  }

  /** Declares what the layers add to the cache; to be called when all have been added. */
  finish(): void {
    const { graph, config, scales } = this.#options;
    const all = this.#measured.flatMap(({ key, value }) => [key, value]);
    const states = graph.node('Concat', all, { axis: int(0) });
    const dims = ['N', 'S', config.kvHeads * config.headSize];
    if (!scales) graph.output('new', states, 'float32', dims);
    else {
      const bytes = graph.node('QuantizeLinear', [states, graph.scalar(1), graph.byteScalar(zeroPoint)]);
      graph.output('new', bytes, 'uint8', dims);
    }
  }

  /** Products of bytes are quickest for one position of each sequence, products in float32 for many of one. */
  #attendInBytes(layer: number, states: States, scoreScale: () => number): Value {
    const { graph } = this.#options;
    const zero = graph.byteScalar(zeroPoint);
    const one = graph.scalar(1);
    return graph.choose(
      this.#shared.isPrefill,
      () => {
        const keys = graph.node('DequantizeLinear', [`past.${layer}.key`, one, zero]);
        const values = graph.node('DequantizeLinear', [`past.${layer}.value`, one, zero]);
        const byPosition = graph.node('Transpose', [keys], { perm: ints(0, 1, 3, 2) });
        return this.#grouped(states, byPosition, values, scoreScale);
      },
      () => this.#decoded(layer, states, scoreScale),
    );
  }

  /** @param scoreScale asked for when the graph is encoded */
  #grouped({ query, key, value }: States, pastKey: Value, pastValue: Value, scoreScale = () => 1): Value {
    const { graph, config } = this.#options;
    const { heads, kvHeads, headSize } = config;
    const { lengths, longest } = this.#shared;
    // The cache that it returns is for caches that live in the runtime; its two outputs go nowhere.
    const [mixed] = graph.nodes(
      'com.microsoft.GroupQueryAttention',
      [query, key, value, pastKey, pastValue, lengths, longest],
      3,
      {
        num_heads: int(heads),
        kv_num_heads: int(kvHeads),
        scale: laterFloat(() => scoreScale() / Math.sqrt(headSize)),
      },
    );
    return graph.node('Reshape', [mixed!, graph.shape(-1, heads * headSize)]);
  }

  /**
   * Attention of one new position of each sequence, products with the cache in integers. The queries of the heads that
   * share a key are rows of one matrix, so that keys are never repeated. Cached and new positions are scored apart and
   * meet only in the softmax, because joining the keys and values themselves would copy the cache.
   */
  #decoded(layer: number, { query, key, value }: States, scoreScale: () => number): Value {
    const { graph, config } = this.#options;
    const { heads, kvHeads, headSize } = config;
    const zero = graph.byteScalar(zeroPoint);
    const one = graph.scalar(1);
    const scale = () => scoreScale() / Math.sqrt(headSize);
    const grouped = graph.node('Reshape', [query, graph.shape(0, kvHeads, heads / kvHeads, headSize)]);
    const own = (states: Value) => graph.node('Reshape', [states, graph.shape(0, kvHeads, 1, headSize)]);
    const cachedScores = graph.node('com.microsoft.MatMulIntegerToFloat', [
      ...[graph.node('QuantizeLinear', [grouped, one, zero]), `past.${layer}.key`],
      ...[graph.later(`attention.${layer}.score_scale`, [], () => Float32Array.of(scale())), one, zero, zero],
    ]);
    const ownScores = graph.node('com.microsoft.FusedMatMul', [grouped, own(key)], {
      transB: int(1),
      alpha: laterFloat(scale),
    });
    // The cached positions come last: how many of them are unused then changes no place of a number that counts, and
    // sums of the same numbers in the same places are the same to the bit, whoever shares the cache.
    const scores = graph.node('Concat', [ownScores, cachedScores], { axis: int(-1) });
    const weights = graph.node('Softmax', [graph.node('Add', [scores, this.#shared.mask])], {
      axis: int(-1),
    });
    const [ownWeights, cachedWeights] = graph.nodes('Split', [weights, this.#shared.scoreColumns], 2, {
      axis: int(-1),
    });
    // Weights are rounded to two bytes: with one, all weights far below 1 would be lost, and in a long context they
    // are most of the sum. The second one is what the first leaves, at most half a step to either side.
    const coarseStep = graph.scalar(1 / 255);
    const fineStep = graph.scalar(1 / (255 * 2 * 127));
    const noZero = graph.byteScalar(0);
    const coarse = graph.node('QuantizeLinear', [cachedWeights!, coarseStep, noZero]);
    const rest = graph.node('Sub', [
      cachedWeights!,
      graph.node('DequantizeLinear', [coarse, coarseStep, noZero]),
    ]);
    const fine = graph.node('QuantizeLinear', [rest, fineStep, zero]);
    const mix = (integers: Value, step: Value, integersZero: Value) =>
      graph.node('com.microsoft.MatMulIntegerToFloat', [
        ...[integers, `past.${layer}.value`, step, one, integersZero, zero],
      ]);
    const mixed = graph.node('Sum', [
      mix(coarse, coarseStep, noZero),
      mix(fine, fineStep, zero),
      graph.node('Mul', [ownWeights!, own(value)]),
    ]);
    return graph.node('Reshape', [mixed, graph.shape(-1, heads * headSize)]);
  }

  /**
   * Rotary positions on [B, S, n * headSize], after the norm of each head where the model has one: then the gains,
   * read when the graph is encoded, are in its weights.
   */
  async #rotate(
    states: Value,
    count: number,
    norm: string,
    gains: () => Float32Array | undefined,
  ): Promise<Value> {
    const { graph, config, tensors } = this.#options;
    const { headSize } = config;
    let normed = states;
    if (config.queryKeyNorm) {
      const shape = [headSize];
      const weights = await tensors.read(`${norm}.weight`, shape);
      const weight = graph.later(norm, shape, () => {
        const factors = gains();
        return factors ? weights.map((own, at) => own * factors[at]!) : weights;
      });
      const byHead = graph.node('Reshape', [states, graph.shape(0, 0, count, headSize)]);
      const rows = graph.node('SimplifiedLayerNormalization', [byHead, weight], {
        axis: int(-1),
        epsilon: float(config.normEpsilon),
      });
      normed = graph.node('Reshape', [rows, graph.shape(0, 0, count * headSize)]);
    }
    const { positions, cosines, sines } = this.#shared;
    return graph.node('com.microsoft.RotaryEmbedding', [normed, positions, cosines, sines]);
  }
}

/** 0 for the new position and for cached ones that are there. */
function addMask(graph: Graph, lengths: Value, cachedLength: Value): Value {
  const scalar = graph.node('Squeeze', [cachedLength]);
  const places = graph.node('Range', [graph.integer(0), scalar, graph.integer(1)]);
  const counts = graph.node('Cast', [graph.node('Reshape', [lengths, graph.shape(-1, 1, 1, 1)])], {
    to: int(7),
  });
  const isThere = graph.node('Less', [places, counts]);
  const cached = graph.node('Where', [isThere, graph.scalar(0), graph.scalar(masked)]);
  return graph.node('Pad', [cached, graph.shape(0, 0, 0, 1, 0, 0, 0, 0)]);
}
