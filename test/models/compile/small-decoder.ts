import type { DecoderConfig } from '../../../src/models/compile/checkpoint.js';

/** A decoder of one layer in which three heads share each key. */
export const smallDecoder: DecoderConfig = {
  kind: 'decoder',
  architecture: 'llama',
  vocabularySize: 16,
  hiddenSize: 48,
  intermediateSize: 8,
  layers: 1,
  heads: 6,
  kvHeads: 2,
  headSize: 8,
  normEpsilon: 1e-5,
  contextLength: 4096,
  attentionBias: false,
  queryKeyNorm: false,
  tiedEmbeddings: true,
  rope: { theta: 10_000 },
};
