import { centerColumns } from './center.js';
import type { Checkpoint } from './checkpoint.js';
import type { Value } from './graph.js';

/** Where weights come from: a checkpoint, or one that is seen differently. */
export type Tensors = Pick<Checkpoint, 'read'>;

/** A linear layer as it is published: `weight` is [outputs, inputs] row-major, `bias` [outputs]. */
export interface LinearLayer {
  /** What its weights are called in the graph. */
  readonly name: string;
  readonly outputs: number;
  readonly inputs: number;
  readonly weight: Float32Array;
  readonly bias?: Float32Array;
  /** The same weight as a float32 value that is in the graph already. */
  readonly stored?: Value;
  /**
   * For inputs of which single ones are far larger than the rest, as some coordinates of a layer norm always are, and
   * products of two activations on some tokens: how many at a time are to be mixed before they are rounded, so that such
   * a spike becomes as many smaller ones. More take longer.
   */
  readonly spread?: number;
  /** Whether rounding its weights costs the model less than it does elsewhere. */
  readonly tolerant?: boolean;
  /** [outputs]: what its outputs are multiplied by, its bias included; asked for when the graph is encoded. */
  readonly gains?: () => Float32Array;
}

/** Linear layers that share their input, as the checkpoint has them. */
export interface LinearLayerParts {
  /** What they are called in the graph, together. */
  readonly name: string;
  readonly inputs: number;
  /** Tensor names without `.weight` and `.bias`. */
  readonly parts: ReadonlyArray<{ readonly tensor: string; readonly outputs: number }>;
  /** Whether they have biases; they have none when left out. */
  readonly bias?: boolean;
  /** [inputs]: what their inputs lack. Their biases make up for it. */
  readonly lacking?: Float32Array;
  /** Whether the mean of the outputs is taken away from each of them. */
  readonly centered?: boolean;
  readonly spread?: number;
  readonly tolerant?: boolean;
  readonly gains?: () => Float32Array;
}

/**
 * Reads linear layers and stacks their outputs into one, in the order of `parts`.
 * @throws CheckpointError naming a tensor that is missing or misshapen
 */
export async function readLinear(tensors: Tensors, options: LinearLayerParts): Promise<LinearLayer> {
  const { name, inputs, parts, lacking, centered, spread, tolerant = false, gains } = options;
  const outputs = parts.reduce((sum, part) => sum + part.outputs, 0);
  const weights: Float32Array[] = [];
  const biases: Float32Array[] = [];
  for (const part of parts) {
    weights.push(await tensors.read(`${part.tensor}.weight`, [part.outputs, inputs]));
    if (options.bias) biases.push(await tensors.read(`${part.tensor}.bias`, [part.outputs]));
  }
  const weight = concatenate(weights);
  const bias = options.bias ? concatenate(biases) : lacking && new Float32Array(outputs);
  if (bias && lacking) addProduct(bias, weight, lacking);
  if (centered) {
    centerColumns(weight, inputs);
    if (bias) centerColumns(bias, 1);
  }
  return {
    name,
    outputs,
    inputs,
    weight,
    tolerant,
    ...(bias && { bias }),
    ...(spread !== undefined && { spread }),
    ...(gains && { gains }),
  };
}

/** Adds weight x inputs to the bias. */
function addProduct(bias: Float32Array, weight: Float32Array, inputs: Float32Array): void {
  for (let output = 0; output < bias.length; output++) {
    let sum = bias[output]!;
    for (let at = 0; at < inputs.length; at++) sum += weight[output * inputs.length + at]! * inputs[at]!;
    bias[output] = sum;
  }
}

function concatenate(arrays: readonly Float32Array[]): Float32Array {
  if (arrays.length === 1) return arrays[0]!;
  const whole = new Float32Array(arrays.reduce((sum, array) => sum + array.length, 0));
  let at = 0;
  for (const array of arrays) {
    whole.set(array, at);
    at += array.length;
  }
  return whole;
}
