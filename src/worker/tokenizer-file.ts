import { z } from 'zod';
import { type SequenceFormat, sequenceFormatOf } from './sequence-format.js';
import { SpecialTokens } from './special-tokens.js';

const addedTokenSchema = z.looseObject({ content: z.string(), special: z.boolean() });

/** What is read of a `tokenizer.json` of the Hugging Face tokenizers library; the library checks the rest. */
const tokenizerFileSchema = z.looseObject({
  added_tokens: z.array(addedTokenSchema).default([]),
  decoder: z.unknown().optional(),
  post_processor: z.unknown().optional(),
  model: z.looseObject({
    vocab: z.unknown(),
    merges: z.array(z.union([z.string(), z.array(z.string())])).optional(),
    unk_token: z.string().nullish(),
    continuing_subword_prefix: z.string().nullish(),
  }),
});
type TokenizerFile = z.infer<typeof tokenizerFileSchema>;

/** How a token's text becomes bytes. */
export type ByteCoding = 'byte-level' | 'byte-fallback' | 'none';

export interface ReadTokenizerFile {
  /** The file for the tokenizers library, with control tokens under their names instead of their spellings. */
  readonly json: string;
  readonly specials: SpecialTokens;
  readonly byteCoding: ByteCoding;
  readonly format: SequenceFormat;
}

/**
 * Reads a `tokenizer.json` and renames its control tokens: in the list of added tokens, and in the model's
 * vocabulary, from which some models would otherwise take the spelling (Unigram by its score, BPE by a merge).
 * Truncation, padding and the post-processor are taken out: prompts and pairs are put together from token ids.
 * @throws Error when the text is not a tokenizer file.
 */
export function readTokenizerFile(text: string): ReadTokenizerFile {
  const file = tokenizerFileSchema.parse(JSON.parse(text));
  const specials = new SpecialTokens(
    file.added_tokens.filter(({ special }) => special).map(({ content }) => content),
  );
  const rename = (token: string) => specials.nameOf(token) ?? token;
  const renamed = {
    ...file,
    truncation: null,
    padding: null,
    post_processor: null,
    added_tokens: file.added_tokens.map((token) =>
      token.special ? { ...token, content: rename(token.content) } : token,
    ),
    model: renameInModel(file.model, specials),
  };
  return {
    json: JSON.stringify(renamed),
    specials,
    byteCoding: byteCodingOf(file.decoder),
    format: sequenceFormatOf(file.post_processor),
  };
}

function renameInModel(model: TokenizerFile['model'], specials: SpecialTokens): object {
  const rename = (token: string) => specials.nameOf(token) ?? token;
  const isOrdinary = (token: string) => specials.nameOf(token) === undefined;
  const renamed: Record<string, unknown> = { ...model, vocab: renameVocabulary(model.vocab, rename) };
  if (typeof model.unk_token === 'string') renamed.unk_token = rename(model.unk_token);
  if (model.merges !== undefined) {
    const prefix = model.continuing_subword_prefix ?? '';
    renamed.merges = model.merges.filter((merge) => {
      const [left = '', right = ''] = typeof merge === 'string' ? merge.split(' ') : merge;
      const product = left + (right.startsWith(prefix) ? right.slice(prefix.length) : right);
      return isOrdinary(left) && isOrdinary(right) && isOrdinary(product);
    });
  }
  return renamed;
}

/** A vocabulary is a list of (token, score) for Unigram models, and a map from token to id for the others. */
function renameVocabulary(vocabulary: unknown, rename: (token: string) => string): unknown {
  if (Array.isArray(vocabulary)) {
    return vocabulary.map(([token, score]: [string, number]) => [rename(token), score]);
  }
  return Object.fromEntries(
    Object.entries(vocabulary as Record<string, number>).map(([token, id]) => [rename(token), id]),
  );
}

const decoderSchema = z.looseObject({
  type: z.string(),
  decoders: z.array(z.looseObject({ type: z.string() })).optional(),
});

function byteCodingOf(decoder: unknown): ByteCoding {
  const parsed = decoderSchema.safeParse(decoder);
  if (!parsed.success) return 'none';
  const types = [parsed.data.type, ...(parsed.data.decoders ?? []).map(({ type }) => type)];
  if (types.includes('ByteLevel')) return 'byte-level';
  return types.includes('ByteFallback') ? 'byte-fallback' : 'none';
}
