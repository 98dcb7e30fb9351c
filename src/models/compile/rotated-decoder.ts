import type { DecoderConfig } from './checkpoint.js';
import type { Tensors } from './linear-layer.js';
import { Rotation } from './rotation.js';

/** A decoder to be compiled. */
export interface DecoderSource {
  readonly config: DecoderConfig;
  readonly tensors: Tensors;
  /** How far the numbers reach that the norms of its residual stream leave (`Rows.reach`). */
  readonly normReach?: number;
}

/**
 * The magnitude at which numbers behind the norms of a rotated stream are cut off. They are nearly normal with variance
 * 1: larger ones are rare enough for their loss to be less than what coarser steps would cost all others.
 */
const normReach = 3.8;

/**
 * The same decoder with its residual stream rotated: the logits are what they were, but no coordinate of the stream
 * is much larger than the others, which is what rounding to 8 bits with one scale per row needs. A rotation changes
 * no length, so the RMS norms commute with it once their weights are multiplied into the layers that follow them;
 * the rotation itself disappears into the weights around it (QuaRot, Ashkboos et al., 2024, section 4, step 1).
 */
export function rotateStream({ config, tensors }: DecoderSource): DecoderSource {
  const width = config.hiddenSize;
  const rotation = new Rotation(width);

  /** A layer that reads the stream, or, for the embeddings, that has not been normalized: [n, width]. */
  async function reader(tensor: string, shape: readonly number[], norm?: string): Promise<Float32Array> {
    const weight = await tensors.read(tensor, shape);
    if (norm !== undefined) {
      const gains = await tensors.read(norm, [width]);
      for (let at = 0; at < weight.length; at++) weight[at]! *= gains[at % width]!;
    }
    rotation.apply(weight);
    return weight;
  }

  /** A layer that adds to the stream: [width, n]. */
  async function writer(tensor: string, shape: readonly number[]): Promise<Float32Array> {
    const weight = await tensors.read(tensor, shape);
    rotation.apply(weight, weight.length / width);
    return weight;
  }

  return {
    config: { ...config, tiedEmbeddings: false },
    normReach,
    tensors: {
      async read(tensor, shape) {
        if (tensor === 'model.embed_tokens.weight') return reader(tensor, shape);
        if (tensor === 'lm_head.weight') {
          const stored = config.tiedEmbeddings ? 'model.embed_tokens.weight' : tensor;
          return reader(stored, shape, 'model.norm.weight');
        }
        if (tensor === 'model.norm.weight' || tensor.endsWith('layernorm.weight')) {
          return new Float32Array(width).fill(1);
        }
        const [, layer, kind] = /^(model\.layers\.\d+)\..*\.(\w+)_proj\.weight$/.exec(tensor) ?? [];
        switch (kind) {
          case 'q':
          case 'k':
          case 'v':
            return reader(tensor, shape, `${layer}.input_layernorm.weight`);
          case 'gate':
          case 'up':
            return reader(tensor, shape, `${layer}.post_attention_layernorm.weight`);
          case 'o':
          case 'down':
            return writer(tensor, shape);
          default:
            return tensors.read(tensor, shape);
        }
      },
    },
  };
}
