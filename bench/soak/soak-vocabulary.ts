import type { Vocabulary } from '../../src/engine/grammar.js';
import type { DecoderManifest } from '../../src/models/manifest.js';

/**
 * Tokens for grammars, whatever the model's own are: every byte, and strings of letters and digits. An engine knows
 * of texts no more than this.
 */
export function soakVocabulary({
  vocabularySize,
  endTokens,
}: Pick<DecoderManifest, 'vocabularySize' | 'endTokens'>): Vocabulary {
  const texts = Array.from({ length: vocabularySize }, (_, token) => {
    if (endTokens.includes(token)) return Buffer.alloc(0);
    return token < 256 ? Buffer.of(token) : Buffer.from(token.toString(36));
  });
  let end = 0;
  const ends = Int32Array.from(texts, ({ length }) => (end += length));
  return { bytes: new Uint8Array(Buffer.concat(texts)), ends, size: vocabularySize, endTokens };
}
