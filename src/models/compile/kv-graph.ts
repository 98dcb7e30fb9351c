import type { KvFormat } from '../manifest.js';
import type { DecoderConfig } from './checkpoint.js';
import { float, type Graph, int, type Value } from './graph.js';

/**
 * Attention over what earlier runs left in the cache, as a graph computes it in one of the formats of the cache. With
 * B sequences, Q queries of each head that has keys of its own, and T cached positions:
 */
export interface KvGraph {
  /** Declares what the graph takes of a layer's cache. */
  declare(graph: Graph, layer: number): void;
  /**
   * Scores queries against the cached keys.
   * @param queries float32 [B, kvHeads, Q, headSize]
   * @returns float32 [B, kvHeads, Q, T]
   */
  score(graph: Graph, layer: number, queries: Value): Value;
  /**
   * Sums the cached values.
   * @param weights float32 [B, kvHeads, Q, T], not negative
   * @returns float32 [B, kvHeads, Q, headSize]
   */
  mix(graph: Graph, layer: number, weights: Value): Value;
}

type Dimensions = Pick<DecoderConfig, 'kvHeads' | 'headSize' | 'contextLength'>;

export function kvGraph(format: KvFormat, dimensions: Dimensions): KvGraph {
  return format === 'int8' ? int8KvGraph(dimensions) : float32KvGraph(dimensions);
}

/** Takes `past.L.key` and `past.L.value`, float32 [B, kvHeads, T, headSize]. */
function float32KvGraph({ kvHeads, headSize }: Dimensions): KvGraph {
  return {
    declare(graph, layer) {
      for (const part of ['key', 'value']) {
        graph.input(`past.${layer}.${part}`, 'float32', ['B', kvHeads, 'T', headSize]);
      }
    },
    score: (graph, layer, queries) => scoreAgainst(graph, queries, `past.${layer}.key`, headSize),
    mix: (graph, layer, weights) => graph.node('MatMul', [weights, `past.${layer}.value`]),
  };
}

/**
 * Queries against keys in float32.
 * @param keys [B, kvHeads, N, headSize]
 * @returns [B, kvHeads, Q, N]
 */
export function scoreAgainst(graph: Graph, queries: Value, keys: Value, headSize: number): Value {
  return graph.node('com.microsoft.FusedMatMul', [queries, keys], {
    transB: int(1),
    alpha: float(1 / Math.sqrt(headSize)),
  });
}

/** What stands for 0 in cached keys and values, and in queries. Unsigned on both sides: see `levelsOf`. */
const zeroPoint = 128;

/**
 * Takes `past.L.key`, uint8 [B, kvHeads, headSize, T], `past.L.value`, uint8 [B, kvHeads, T, headSize], and the scales
 * of both, float32 [B, kvHeads, 1, T]. A quarter of the bytes, and integer products: decoding many sequences is a
 * matter of reading the cache.
 *
 * Products of integers are exact, so the result does not depend on what stands in unused positions, whose weight is 0.
 * All bytes are unsigned because products of signed and unsigned ones saturate on processors without VNNI.
 */
function int8KvGraph({ kvHeads, headSize, contextLength }: Dimensions): KvGraph {
  const levels = levelsOf(contextLength);
  return {
    declare(graph, layer) {
      const prefix = `past.${layer}`;
      graph.input(`${prefix}.key`, 'uint8', ['B', kvHeads, headSize, 'T']);
      graph.input(`${prefix}.key_scale`, 'float32', ['B', kvHeads, 1, 'T']);
      graph.input(`${prefix}.value`, 'uint8', ['B', kvHeads, 'T', headSize]);
      graph.input(`${prefix}.value_scale`, 'float32', ['B', kvHeads, 1, 'T']);
    },

    /** Each query is rounded by its own largest magnitude. One of zeros becomes 0 / 0, which 0 multiplies away. */
    score(graph, layer, queries) {
      const largest = graph.node('ReduceMax', [graph.node('Abs', [queries]), graph.shape(-1)]);
      const integers = graph.node('QuantizeLinear', [
        graph.node('Div', [queries, largest]),
        graph.scalar(1 / 127),
        graph.byteScalar(zeroPoint),
      ]);
      const product = graph.node('com.microsoft.MatMulIntegerToFloat', [
        integers,
        `past.${layer}.key`,
        graph.scalar(1 / (127 * Math.sqrt(headSize))),
        `past.${layer}.key_scale`,
        graph.byteScalar(zeroPoint),
        graph.byteScalar(zeroPoint),
      ]);
      return graph.node('Mul', [product, largest]);
    },

    /**
     * Weights are rounded to two bytes, which are two rows of one product: with one byte, all weights far below the
     * largest would be lost, and in a long context they are most of the sum.
     */
    mix(graph, layer, weights) {
      const scaled = graph.node('Mul', [weights, `past.${layer}.value_scale`]);
      const largest = graph.node('ReduceMax', [scaled, graph.shape(-1)]);
      const step = graph.node('Mul', [largest, graph.scalar(1 / levels)]);
      const steps = graph.node('Div', [scaled, step]);
      const coarse = graph.node('Floor', [steps]);
      const fine = graph.node('Mul', [graph.node('Sub', [steps, coarse]), graph.scalar(levels)]);
      const integers = graph.node('QuantizeLinear', [
        graph.node('Concat', [coarse, fine], { axis: int(2) }),
        graph.scalar(1),
        graph.byteScalar(0),
      ]);
      const product = graph.node('com.microsoft.MatMulIntegerToFloat', [
        integers,
        `past.${layer}.value`,
        graph.scalar(1),
        graph.scalar(1),
        graph.byteScalar(0),
        graph.byteScalar(zeroPoint),
      ]);
      const [high, low] = graph.nodes('Split', [product], 2, { axis: int(2), num_outputs: int(2) });
      const sum = graph.node('Add', [high!, graph.node('Mul', [low!, graph.scalar(1 / levels)])]);
      return graph.node('Mul', [sum, step]);
    },
  };
}

/** Steps of a byte of weight: all of them, unless a sum over the whole context could pass 32 bits. */
function levelsOf(contextLength: number): number {
  return Math.min(255, Math.floor((2 ** 31 - 1) / (255 * contextLength)));
}
