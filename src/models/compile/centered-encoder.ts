import type { EncoderConfig } from './checkpoint.js';
import type { Tensors } from './linear-layer.js';

/** Weights of an encoder whose norms leave out their biases. */
export interface CenteredTensors extends Tensors {
  /** A norm's bias with its mean taken away: what the stream behind it lacks before it is summed. */
  centeredBias(norm: string): Promise<Float32Array>;
}

/**
 * The weights of an encoder of BERT's family, seen so that its layer norms have less to do; what it computes is the same.
 *
 * - What is summed before a norm has mean 0 where it comes from weights: the embeddings, and what attention and the
 *   feed-forward layers add. A norm takes the mean away in any case.
 * - The biases of norms are in the biases of the layers that follow. The stream itself lacks them: who wants it as it is
 *   must add that of its last norm, and who sums it, `centeredBias`.
 */
export function centerUpdates(
  { hiddenSize: width }: Pick<EncoderConfig, 'hiddenSize'>,
  tensors: Tensors,
): CenteredTensors {
  const biasOf = (norm: string) => tensors.read(`${norm}.bias`, [width]);

  /** The bias of a layer that reads the stream behind a norm. */
  async function readerBias(layer: string, outputs: number, norm: string): Promise<Float32Array> {
    const weight = await tensors.read(`${layer}.weight`, [outputs, width]);
    const missing = await biasOf(norm);
    const bias = await tensors.read(`${layer}.bias`, [outputs]);
    return bias.map((own, output) => {
      let sum = own;
      for (let at = 0; at < width; at++) sum += weight[output * width + at]! * missing[at]!;
      return sum;
    });
  }

  return {
    async centeredBias(norm) {
      return center(await biasOf(norm), width);
    },
    async read(tensor, shape) {
      if (/^embeddings\.\w+_embeddings\.weight$/.test(tensor)) {
        return center(await tensors.read(tensor, shape), width);
      }
      const [, layer, part] = /^(encoder\.layer\.\d+\.(.+))\.(?:weight|bias)$/.exec(tensor) ?? [];
      if (part === 'attention.output.dense' || part === 'output.dense') {
        return center(await tensors.read(tensor, shape), width, shape[1]);
      }
      const norm = tensor.endsWith('.bias') && part !== undefined ? normBefore(tensor, part) : undefined;
      return norm === undefined ? tensors.read(tensor, shape) : readerBias(layer!, shape[0]!, norm);
    },
  };
}

/** The norm whose output a layer reads, if it reads one's. */
function normBefore(tensor: string, part: string): string | undefined {
  const index = Number(/\d+/.exec(tensor)![0]);
  if (part === 'intermediate.dense') return `encoder.layer.${index}.attention.output.LayerNorm`;
  if (!/^attention\.self\.(?:query|key|value)$/.test(part)) return undefined;
  return index === 0 ? 'embeddings.LayerNorm' : `encoder.layer.${index - 1}.output.LayerNorm`;
}

/**
 * Takes the mean over `width` away from numbers in place.
 * @param columns how many numbers lie side by side for each of the `width`; without it they lie in rows of `width`
 */
function center(numbers: Float32Array, width: number, columns?: number): Float32Array {
  const [groups, step] = columns === undefined ? [numbers.length / width, 1] : [columns, columns];
  for (let group = 0; group < groups; group++) {
    const first = columns === undefined ? group * width : group;
    let sum = 0;
    for (let at = 0; at < width; at++) sum += numbers[first + at * step]!;
    for (let at = 0; at < width; at++) numbers[first + at * step]! -= sum / width;
  }
  return numbers;
}
