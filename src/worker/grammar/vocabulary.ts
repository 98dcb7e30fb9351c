import type { Vocabulary } from '../../engine/grammar.js';
import type { DecoderManifest } from '../../models/manifest.js';
import type { Tokenizer } from '../tokenizer.js';

export interface VocabularyOptions {
  readonly tokenizer: Tokenizer;
  readonly manifest: Pick<DecoderManifest, 'vocabularySize' | 'endTokens'>;
  /** Control tokens that a grammar may ask for, as the texts they are spelled with. */
  readonly spelledTokens: ReadonlySet<number>;
}

/** The tokens of a model as grammars see them: what each adds to a text, in bytes; control tokens add nothing. */
export function vocabularyOf({ tokenizer, manifest, spelledTokens }: VocabularyOptions): Vocabulary {
  const { vocabularySize: size, endTokens } = manifest;
  const pieces = Array.from({ length: size }, (_, token) => {
    const isControl = tokenizer.spellingOf(token) !== undefined && !spelledTokens.has(token);
    return isControl || endTokens.includes(token) ? new Uint8Array() : tokenizer.describe(token);
  });
  let end = 0;
  const ends = Int32Array.from(pieces, (piece) => {
    end += piece.length;
    return end;
  });
  const bytes = new Uint8Array(end);
  for (const [token, piece] of pieces.entries()) bytes.set(piece, ends[token]! - piece.length);
  return { bytes, ends, size, endTokens };
}
