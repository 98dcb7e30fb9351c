import { CheckpointError } from '../checkpoint.js';
import type { GgufMetadata } from './gguf-metadata.js';
import { preTokenizers } from './pre-tokenizers.js';
import { sentencePieceFields } from './sentencepiece.js';

/** Kinds of tokens in `tokenizer.ggml.token_type`. */
const tokenType = { unknown: 2, control: 3, userDefined: 4, unused: 5 } as const;

/** Kinds of tokenizers by `tokenizer.ggml.model`. */
const kinds = { gpt2: 'byte-level BPE', llama: 'SentencePiece BPE' } as const;

/** What a GGUF file says of tokens. */
export interface GgufTokens {
  readonly count: number;
  readonly tokenizerJson: string;
  readonly endTokens: readonly number[];
  readonly chatTemplate: string | null;
  readonly beginText: string | null;
  readonly endText: string | null;
}

/**
 * Rebuilds a tokenizer.json from `tokenizer.ggml.*` (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md,
 * "Tokenizer").
 * @throws CheckpointError when the tokenizer is of another kind or its parts do not fit together.
 */
export function readGgufTokens(metadata: GgufMetadata): GgufTokens {
  const model = metadata.text('tokenizer.ggml.model');
  if (model !== 'gpt2' && model !== 'llama') {
    const supported = Object.entries(kinds).map(([name, kind]) => `${name} (${kind})`);
    throw new CheckpointError(
      `${metadata.path}: tokenizer "${model}" is not supported; supported are ${supported.join(', ')}`,
    );
  }
  const tokens = metadata.texts('tokenizer.ggml.tokens');
  const tokenAt = (key: string) => {
    const id = metadata.number(`tokenizer.ggml.${key}_token_id`);
    if (id !== undefined && tokens[id] === undefined) {
      throw new CheckpointError(`${metadata.path}: tokenizer.ggml.${key}_token_id ${id} is not a token`);
    }
    return id;
  };
  const begin = tokenAt('bos');
  const end = tokenAt('eos');
  const endTokens = [end, tokenAt('eot'), tokenAt('eom')].filter((id) => id !== undefined);
  const types = metadata.numbers('tokenizer.ggml.token_type') ?? [];
  const vocabulary = readVocabulary(metadata.path, tokens, types);
  const textAt = (id: number | undefined) => (id === undefined ? null : tokens[id]!);
  const fields =
    model === 'gpt2'
      ? byteLevelFields(metadata, vocabulary)
      : sentencePieceFields(metadata, vocabulary, {
          unknown: textAt(tokenAt('unknown')),
          begin: textAt(begin),
        });
  const file = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: tokens.flatMap((content, id) => addedToken(id, content, types[id])),
    ...fields,
  };
  return {
    count: tokens.length,
    tokenizerJson: JSON.stringify(file),
    endTokens: [...new Set(endTokens)],
    chatTemplate: metadata.text('tokenizer.chat_template') ?? null,
    beginText: textAt(begin),
    endText: textAt(end),
  };
}

function byteLevelFields(metadata: GgufMetadata, vocabulary: ReadonlyMap<string, number>): object {
  const name = metadata.text('tokenizer.ggml.pre') ?? 'default';
  const pre = Object.hasOwn(preTokenizers, name) ? preTokenizers[name] : undefined;
  if (!pre) {
    throw new CheckpointError(
      `${metadata.path}: pre-tokenizer "${name}" is not supported; supported are ${Object.keys(preTokenizers).join(', ')}`,
    );
  }
  return {
    normalizer: pre.normalizer,
    pre_tokenizer: pre.preTokenizer,
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: pre.ignoreMerges,
      vocab: Object.fromEntries(vocabulary),
      merges: readMerges(metadata, vocabulary),
    },
  };
}

/** Unused tokens only pad the embedding table; they have no text that could be met or made. */
function readVocabulary(
  path: string,
  tokens: readonly string[],
  types: readonly number[],
): Map<string, number> {
  const vocabulary = new Map<string, number>();
  for (const [id, token] of tokens.entries()) {
    if (types[id] === tokenType.unused) {
      continue;
    }
    if (vocabulary.has(token)) {
      throw new CheckpointError(
        `${path}: tokens ${vocabulary.get(token)} and ${id} are both ${JSON.stringify(token)}`,
      );
    }
    vocabulary.set(token, id);
  }
  return vocabulary;
}

/** Control tokens are special; tokens their users defined are whole, too, but part of the text. */
function addedToken(id: number, content: string, type: number | undefined): object[] {
  const special = type === tokenType.control || type === tokenType.unknown;
  if (!special && type !== tokenType.userDefined) {
    return [];
  }
  return [{ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special }];
}

function readMerges(metadata: GgufMetadata, vocabulary: ReadonlyMap<string, number>): [string, string][] {
  return metadata.texts('tokenizer.ggml.merges').map((merge) => {
    const space = merge.indexOf(' ', 1);
    const left = merge.slice(0, space);
    const right = merge.slice(space + 1);
    if (space < 0 || [left, right, left + right].some((part) => !vocabulary.has(part))) {
      throw new CheckpointError(
        `${metadata.path}: merge ${JSON.stringify(merge)} is not of two tokens into a third`,
      );
    }
    return [left, right];
  });
}
