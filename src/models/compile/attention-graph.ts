import type { KvFormat } from '../manifest.js';
import { CheckpointError, type DecoderConfig } from './checkpoint.js';
import { absent, float, type Graph, int, string, type Value } from './graph.js';
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

/** Values that every layer uses. */
interface Shared {
  /** [3]: B, S, (heads + 2 * kvHeads) * headSize */
  readonly packedShape: Value;
  readonly lengths: Value;
  readonly longest: Value;
  /** int64 [1]: the most positions that a row has in the cache; prompts that are read together all have as many. */
  readonly cached: Value;
  /** int64 [B]: where the first new position of each row goes. */
  readonly places: Value;
  /** int64 [B, S] */
  readonly positions: Value;
  /** Rotary caches, [contextLength, headSize / 2]. */
  readonly cosines: Value;
  readonly sines: Value;
  /** float32 [heads]: scores of a position that takes no share in any softmax. */
  readonly sinks: Value;
  /** bool [1]: whether S is more than `decodeWidth`, or nothing is cached. */
  readonly isPrefill: Value;
}

/**
 * Less than any score, so that its exponential beside one is 0. Attention that is given such a sink is computed the plain
 * way: all scores of a head, then their softmax. Without one ONNX Runtime does it block by block, which suits longer
 * sequences and cores with smaller caches, and row by row as soon as the rows differ in length.
 */
const noSink = -1e30;

/**
 * Scores of one new position, over all heads, up to which prompts are read the plain way. All scores of a chunk are in
 * memory then, 64 MiB for 128 positions. It is a twentieth quicker for prompts of 128 tokens of SmolLM2-135M, the same
 * for 2,000 and 2% slower for 8,000.
 */
const plainScores = 2 ** 17;

/**
 * New positions of a sequence that has a past in a cache in bytes, up to which they are computed as one is. Of more than
 * about twenty the products with float32 are quicker.
 */
export const decodeWidth = 16;

/** Weights of the norms of a layer's queries and keys, for a model that has them: [headSize] each. */
interface Norms {
  readonly query: Value;
  readonly key: Value;
}

/** Queries, keys and values of the new positions, each [B, S, its heads * headSize]. */
interface States {
  readonly query: Value;
  readonly key: Value;
  readonly value: Value;
}

/**
 * What the scales of a layer are made of: its rotated keys, its values, and what attention mixes of those,
 * [R, heads * headSize].
 */
export interface MeasuredStates extends Pick<States, 'key' | 'value'> {
  readonly mixed: Value;
}

/**
 * Causal attention of a decoder's layers over the new positions and those that earlier runs left in the cache.
 *
 * Inputs of the graph besides `input_ids`, with B sequences, S new positions and a cache of T:
 * - `lengths`: int32 [B], the positions of each sequence, cached and new, less one
 * - `longest`: int32 [1], the most positions of a sequence, cached and new; at most T
 * - `past.L.key`, `past.L.value`: [B, kvHeads, T, headSize] of float32 or int8, what the cache holds. Positions beyond
 *   a sequence's own may hold anything.
 *
 * Outputs: `present.L.key`, `present.L.value`: the same with the new keys (rotated) and values in their places. They are
 * meant to be the same memory as the inputs: then only the new positions are written, else all is copied.
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
    const lengths = graph.input('lengths', 'int32', ['B']);
    const longest = graph.input('longest', 'int32', [1]);
    for (let layer = 0; layer < layers; layer++) {
      for (const part of ['key', 'value']) {
        graph.input(`past.${layer}.${part}`, cacheType(scales), ['B', kvHeads, 'T', headSize]);
      }
    }
    const { cosines, sines } = rotaryCaches(config.rope, headSize, contextLength);
    const cacheShape = [contextLength, headSize / 2];
    const packedWidth = graph.shape((heads + 2 * kvHeads) * headSize);
    const width = graph.node('Shape', [ids], { start: int(1), end: int(2) });
    const before = (positions: Value) => graph.node('Sub', [graph.cast(positions, 'int64'), width]);
    const cached = before(longest);
    const places = graph.node('Add', [before(lengths), graph.integer(1)]);
    const hasPast = graph.node('Min', [cached, graph.shape(1)]);
    const widest = graph.node('Mul', [hasPast, graph.shape(decodeWidth)]);
    const columns = graph.node('Range', [graph.integer(0), graph.node('Squeeze', [width]), graph.integer(1)]);
    return new AttentionGraph(options, {
      packedShape: graph.node('Concat', [graph.node('Shape', [ids]), packedWidth], { axis: int(0) }),
      lengths,
      longest,
      cached,
      places,
      positions: graph.node('Add', [graph.node('Reshape', [places, graph.shape(-1, 1)]), columns]),
      cosines: await graph.weight('rotary.cosines', cacheShape, cosines),
      sines: await graph.weight('rotary.sines', cacheShape, sines),
      sinks: await graph.weight('sinks', [heads], new Float32Array(heads).fill(noSink)),
      isPrefill: graph.node('Greater', [width, widest]),
    });
  }

  /** By layer, what is to be measured for the scales. */
  get measured(): readonly MeasuredStates[] {
    return this.#measured;
  }

  /**
   * @param rows float32 [R, (heads + 2 * kvHeads) * headSize]: queries, keys and values of a layer
   * @returns float32 [R, heads * headSize]
   */
  async attend(layer: number, rows: Value): Promise<Value> {
    const { graph, config, scales } = this.#options;
    const { heads, kvHeads, headSize } = config;
    const norms = await this.#norms(layer);
    const packed = graph.node('Reshape', [rows, this.#shared.packedShape]);
    const inPlace = () => this.#inPlace(layer, packed, norms);
    const [states, ...present] = scales
      ? graph.choose(this.#shared.isPrefill, () => this.#inFloat(layer, packed, norms), inPlace)
      : inPlace();
    // Not in the branches: what those give at their ends is copied.
    const mixed = graph.node('Reshape', [states!, graph.shape(-1, heads * headSize)]);
    for (const [index, part] of ['key', 'value'].entries()) {
      const dims = ['B', kvHeads, 'T', headSize];
      graph.output(`present.${layer}.${part}`, present[index]!, cacheType(scales), dims);
    }
    const { key, value } = this.#rotated(packed, norms);
    this.#measured[layer] = { key, value, mixed };
    return mixed;
  }

  /**
   * Attention that reads the cache as it is and puts the new positions there. It computes one position as it does
   * several, which are to have the same result.
   * @returns [B, S, heads * headSize], and the layer's keys and values
   */
  #inPlace(layer: number, packed: Value, norms: Norms | undefined): Value[] {
    const past = { key: `past.${layer}.key`, value: `past.${layer}.value` };
    const type = cacheType(this.#options.scales);
    return this.#grouped(packed, norms, past, { type, plain: type === 'int8' });
  }

  /**
   * Attention over a cache in bytes that is read as float32 first, for many new positions of a sequence: products of
   * such are twice as quick. For few of them reading all of the cache takes longer.
   * @returns as `#inPlace` does
   */
  #inFloat(layer: number, packed: Value, norms: Norms | undefined): Value[] {
    const { graph } = this.#options;
    const { cached, places } = this.#shared;
    const [one, zero] = [graph.scalar(1), graph.signedByteScalar(0)];
    const axis = graph.shape(2);
    const read = (part: string) => {
      const used = graph.node('Slice', [`past.${layer}.${part}`, graph.shape(0), cached, axis]);
      return graph.node('DequantizeLinear', [used, one, zero]);
    };
    const write = (part: string, present: Value) => {
      const fresh = graph.node('Slice', [present, cached, graph.shape(2 ** 31 - 1), axis]);
      const bytes = graph.node('QuantizeLinear', [fresh, one, zero]);
      return graph.node('TensorScatter', [`past.${layer}.${part}`, bytes, places], { axis: int(-2) });
    };
    const past = { key: read('key'), value: read('value') };
    const { heads, contextLength } = this.#options.config;
    const plain = heads * contextLength <= plainScores;
    const [mixed, key, value] = this.#grouped(packed, norms, past, { type: 'float32', plain });
    return [mixed!, write('key', key!), write('value', value!)];
  }

  /** @returns [B, S, heads * headSize], and keys and values, those of the past before the new ones */
  #grouped(
    packed: Value,
    norms: Norms | undefined,
    past: Readonly<Record<'key' | 'value', Value>>,
    { type, plain }: { readonly type: KvFormat; readonly plain: boolean },
  ): Value[] {
    const { graph, config } = this.#options;
    const { heads, kvHeads, headSize } = config;
    const { lengths, longest, cosines, sines, sinks } = this.#shared;
    // The operator rotates heads of no other size.
    const rotates = headSize % 16 === 0;
    const { query, key, value } = this.#operands(packed, norms, rotates);
    const inBytes = type === 'int8';
    // The scales are in the weights around.
    const one = graph.scalars(1);
    return graph.nodes(
      'com.microsoft.GroupQueryAttention',
      [
        ...[query, key, value, past.key, past.value, lengths, longest],
        ...(rotates ? [cosines, sines] : [absent, absent]),
        ...[absent, absent, plain ? sinks : absent],
        ...(inBytes ? [one, one] : []),
      ],
      3,
      {
        num_heads: int(heads),
        kv_num_heads: int(kvHeads),
        scale: float(1 / Math.sqrt(headSize)),
        do_rotary: int(rotates ? 1 : 0),
        ...(inBytes && {
          kv_cache_bit_width: int(8),
          k_quant_type: string('PER_TENSOR'),
          v_quant_type: string('PER_TENSOR'),
        }),
      },
    );
  }

  /** What attention takes as query, key and value: all in one where neither norms nor rotation want them apart. */
  #operands(packed: Value, norms: Norms | undefined, rotates: boolean): States {
    if (!rotates) return this.#rotated(packed, norms);
    return norms ? this.#normed(this.#split(packed), norms) : { query: packed, key: absent, value: absent };
  }

  #split(packed: Value): States {
    const { graph, config } = this.#options;
    const { heads, kvHeads, headSize } = config;
    const sizes = graph.shape(heads * headSize, kvHeads * headSize, kvHeads * headSize);
    const [query, key, value] = graph.nodes('Split', [packed, sizes], 3, { axis: int(2) });
    return { query: query!, key: key!, value: value! };
  }

  #rotated(packed: Value, norms: Norms | undefined): States {
    const { graph } = this.#options;
    const { positions, cosines, sines } = this.#shared;
    const states = this.#normed(this.#split(packed), norms);
    const rotate = (of: Value) =>
      graph.node('com.microsoft.RotaryEmbedding', [of, positions, cosines, sines]);
    return { ...states, query: rotate(states.query), key: rotate(states.key) };
  }

  /** Each head of the queries and of the keys by the norms, where there are any. */
  #normed(states: States, norms: Norms | undefined): States {
    const { graph, config } = this.#options;
    const { heads, kvHeads, headSize } = config;
    if (!norms) return states;
    const norm = (of: Value, count: number, weight: Value) => {
      const byHead = graph.node('Reshape', [of, graph.shape(0, 0, count, headSize)]);
      const rows = graph.node('SimplifiedLayerNormalization', [byHead, weight], {
        axis: int(-1),
        epsilon: float(config.normEpsilon),
      });
      return graph.node('Reshape', [rows, graph.shape(0, 0, count * headSize)]);
    };
    return {
      ...states,
      query: norm(states.query, heads, norms.query),
      key: norm(states.key, kvHeads, norms.key),
    };
  }

  /** Reads the norms' weights, with the scales in them. */
  async #norms(layer: number): Promise<Norms | undefined> {
    const { graph, config, tensors, scales } = this.#options;
    if (!config.queryKeyNorm) return undefined;
    const shape = [config.headSize];
    const weight = async (part: 'query' | 'key') => {
      const name = `model.layers.${layer}.self_attn.${part[0]}_norm`;
      const weights = await tensors.read(`${name}.weight`, shape);
      // The scales are read when the graph is encoded.
      return graph.later(name, shape, () => {
        const factors = scales?.layer(layer)[part];
        return factors ? weights.map((own, at) => own * factors[at]!) : weights;
      });
    };
    return { query: await weight('query'), key: await weight('key') };
  }
}

function cacheType(scales: StateScales | undefined): KvFormat {
  return scales ? 'int8' : 'float32';
}
