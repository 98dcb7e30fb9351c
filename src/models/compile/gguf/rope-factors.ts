import type { DecoderConfig } from '../checkpoint.js';

type Llama3Scaling = NonNullable<DecoderConfig['rope']['llama3']>;

/**
 * What Llama 3's scaling divides each rotary frequency by: nothing for the quick ones, `factor` for the slow ones,
 * and a blend between (transformers, `_compute_llama3_parameters`). One value per pair of a head.
 */
export function llama3Factors(
  scaling: Llama3Scaling,
  { theta, headSize }: { theta: number; headSize: number },
): Float32Array {
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContextLength } = scaling;
  return Float32Array.from({ length: headSize / 2 }, (_, pair) => {
    const wavelength = 2 * Math.PI * theta ** ((2 * pair) / headSize);
    const turns = originalContextLength / wavelength;
    if (turns > highFrequencyFactor) {
      return 1;
    }
    if (turns < lowFrequencyFactor) {
      return factor;
    }
    const smooth = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}

/**
 * The scaling that the factors of a GGUF file came from, if it is one of the Llama 3 models': they share everything
 * but the factor, which is the largest of the factors.
 */
export function recognizeLlama3(
  factors: Float32Array,
  rope: { theta: number; headSize: number },
): Llama3Scaling | undefined {
  const scaling: Llama3Scaling = {
    factor: Math.max(...factors),
    lowFrequencyFactor: 1,
    highFrequencyFactor: 4,
    originalContextLength: 8192,
  };
  const expected = llama3Factors(scaling, rope);
  const same =
    factors.length === expected.length &&
    factors.every((value, pair) => Math.abs(value - expected[pair]!) <= 1e-4 * expected[pair]!);
  return same ? scaling : undefined;
}
