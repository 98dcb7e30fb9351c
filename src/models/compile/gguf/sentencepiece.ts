import { CheckpointError } from '../checkpoint.js';
import type { GgufMetadata } from './gguf-metadata.js';

/** What SentencePiece writes for a space. */
const space = '▁';

/**
 * The fields of a tokenizer.json that do what SentencePiece's BPE does, as the authors of Llama 2 and Mistral publish
 * them beside their own files: words are told by the space before them, and what is not in the vocabulary falls apart
 * into byte tokens.
 * @throws CheckpointError when there are no scores, or byte tokens are missing
 */
export function sentencePieceFields(
  metadata: GgufMetadata,
  vocabulary: ReadonlyMap<string, number>,
  { unknown, begin }: { unknown: string | null; begin: string | null },
): object {
  const addsSpace = metadata.flag('tokenizer.ggml.add_space_prefix') ?? true;
  const addsBegin = (metadata.flag('tokenizer.ggml.add_bos_token') ?? true) && begin !== null;
  for (let byte = 0; byte < 256; byte++) {
    if (!vocabulary.has(byteToken(byte))) {
      throw new CheckpointError(`${metadata.path}: the vocabulary has no ${byteToken(byte)}`);
    }
  }
  return {
    normalizer: {
      type: 'Sequence',
      normalizers: [
        ...(addsSpace ? [{ type: 'Prepend', prepend: space }] : []),
        { type: 'Replace', pattern: { String: ' ' }, content: space },
      ],
    },
    pre_tokenizer: null,
    post_processor: addsBegin ? beginningWith(begin, vocabulary.get(begin)!) : null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: space }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...(addsSpace ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
      ],
    },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: unknown,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab: Object.fromEntries(vocabulary),
      merges: mergesByScore(metadata, vocabulary),
    },
  };
}

function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
}

/** The post-processor that puts a control token before a text. */
function beginningWith(token: string, id: number): object {
  const special = (type: number) => ({ SpecialToken: { id: token, type_id: type } });
  const sequence = (name: string, type: number) => ({ Sequence: { id: name, type_id: type } });
  return {
    type: 'TemplateProcessing',
    single: [special(0), sequence('A', 0)],
    pair: [special(0), sequence('A', 0), special(1), sequence('B', 1)],
    special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } },
  };
}

/**
 * SentencePiece joins, of all neighbours that make a token, those whose token has the highest score. So every way to
 * split a token into two is a merge, ranked by the token's score; of one token's, those of earlier parts come first.
 */
function mergesByScore(metadata: GgufMetadata, vocabulary: ReadonlyMap<string, number>): [string, string][] {
  const scores = metadata.numbers('tokenizer.ggml.scores');
  if (scores === undefined) throw new CheckpointError(`${metadata.path}: tokenizer.ggml.scores is missing`);
  const merges: { pair: [string, string]; score: number; left: number; right: number }[] = [];
  for (const [token, id] of vocabulary) {
    const characters = [...token];
    for (let at = 1; at < characters.length; at++) {
      const pair: [string, string] = [characters.slice(0, at).join(''), characters.slice(at).join('')];
      const [left, right] = [vocabulary.get(pair[0]), vocabulary.get(pair[1])];
      if (left !== undefined && right !== undefined)
        merges.push({ pair, score: scores[id] ?? 0, left, right });
    }
  }
  return merges
    .sort((a, b) => b.score - a.score || a.left - b.left || a.right - b.right)
    .map(({ pair }) => pair);
}
