import { Tokenizer } from '../../../src/worker/tokenizer.js';

const bytes = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
);

/**
 * A tokenizer as Llama 2 has it: spaces as `▁`, and behind the pieces a token for each byte. The first three pieces
 * are `<unk>` and what begins and ends a text.
 */
export function sentencePieceTokenizer(pieces: readonly string[]): Tokenizer {
  return new Tokenizer(
    JSON.stringify({
      version: '1.0',
      added_tokens: [0, 1, 2].map((id) => ({
        id,
        content: pieces[id],
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        special: true,
      })),
      normalizer: null,
      pre_tokenizer: null,
      post_processor: null,
      decoder: {
        type: 'Sequence',
        decoders: [
          { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
          { type: 'ByteFallback' },
          { type: 'Fuse' },
          { type: 'Strip', content: ' ', start: 1, stop: 0 },
        ],
      },
      model: {
        type: 'BPE',
        unk_token: '<unk>',
        byte_fallback: true,
        vocab: Object.fromEntries([...pieces, ...bytes].map((piece, id) => [piece, id])),
        merges: [],
      },
    }),
  );
}
