import type { DecoderConfig } from './checkpoint.js';

/**
 * Cosines and sines of rotary position embeddings (Su et al., 2021): both [positions, headSize / 2] row-major.
 * Frequencies are `theta^(-2i / headSize)`, with Llama 3's scaling where the model has it: wavelengths beyond the
 * original context are stretched by `factor`, short ones are left alone, and those between are blended.
 */
export function rotaryCaches(
  rope: DecoderConfig['rope'],
  headSize: number,
  positions: number,
): { cosines: Float32Array; sines: Float32Array } {
  const half = headSize / 2;
  const frequencies = Array.from({ length: half }, (_, i) =>
    scaleFrequency(rope.theta ** ((-2 * i) / headSize), rope.llama3),
  );
  const cosines = new Float32Array(positions * half);
  const sines = new Float32Array(positions * half);
  for (let position = 0; position < positions; position++) {
    for (let i = 0; i < half; i++) {
      // The reference multiplies in float32, which shows at high positions.
      const angle = Math.fround(position * Math.fround(frequencies[i]!));
      cosines[position * half + i] = Math.cos(angle);
      sines[position * half + i] = Math.sin(angle);
    }
  }
  return { cosines, sines };
}

function scaleFrequency(frequency: number, scaling: DecoderConfig['rope']['llama3']): number {
  if (!scaling) return frequency;
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContextLength } = scaling;
  const turns = (originalContextLength * frequency) / (2 * Math.PI);
  if (turns < lowFrequencyFactor) return frequency / factor;
  if (turns > highFrequencyFactor) return frequency;
  const blend = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
  return (1 - blend) * (frequency / factor) + blend * frequency;
}
