import ajvModule from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { bytesOfToken, type Vocabulary } from '../../../src/engine/grammar.js';
import { GrammarCache } from '../../../src/engine/grammar-cache.js';
import { vocabularyOf } from '../../../src/worker/grammar/vocabulary.js';
import { sentencePieceTokenizer } from '../support/sentencepiece.js';
import { chatTokenizer, decoderManifest } from '../support/workbench.js';
import { randomText } from './random-text.js';
import { schemaGrammar } from './schema-grammar.js';

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 6 },
    'größe 名前': { type: 'integer', minimum: 0, maximum: 250 },
    kind: { enum: ['a b', 'ü', '🚀'] },
  },
  required: ['name', 'größe 名前', 'kind'],
  additionalProperties: false,
};
const grammar = schemaGrammar(schema);
const validate = new ajvModule.default({ strict: false }).compile(schema);

/** Draws texts of the grammar, and checks each. */
async function expectTexts(vocabulary: Vocabulary): Promise<void> {
  const cache = new GrammarCache(vocabulary);
  let complete = 0;
  for (let seed = 0; seed < 20; seed++) {
    const reply = await randomText(cache, grammar, { vocabulary, seed });
    if (!reply.complete) continue;
    complete++;
    expect(validate(JSON.parse(reply.text)), reply.text).toBe(true);
  }
  expect(complete).toBeGreaterThan(10);
}

/** The tokens that may begin a text of the grammar. */
async function firstTokens(vocabulary: Vocabulary): Promise<{ tokens: number[]; words: number }> {
  const follower = await new GrammarCache(vocabulary).follow(grammar);
  try {
    const mask = await follower.allowed();
    const tokens = Array.from({ length: mask.length * 32 }, (_, token) => token);
    return {
      tokens: tokens.filter((token) => ((mask[token >> 5]! >>> (token & 31)) & 1) === 1),
      words: mask.length,
    };
  } finally {
    follower.dispose();
  }
}

function chatVocabulary(vocabularySize: number): Vocabulary {
  return vocabularyOf({
    tokenizer: chatTokenizer,
    manifest: { vocabularySize, endTokens: decoderManifest.endTokens },
    spelledTokens: new Set(),
  });
}

describe('a vocabulary', () => {
  it.each([512, 513, 531, 543, 544, 575])(
    'of %i logits, more than tokens, gives a bit to each',
    async (size) => {
      const vocabulary = chatVocabulary(size);
      const { tokens, words } = await firstTokens(vocabulary);
      expect(words).toBe(Math.ceil(size / 32));
      expect(tokens).toEqual((await firstTokens(chatVocabulary(512))).tokens);
      await expectTexts(vocabulary);
    },
  );

  it('smaller than the tokenizer leaves out what the model cannot draw', async () => {
    const vocabulary = chatVocabulary(401);
    expect(vocabulary.ends).toHaveLength(401);
    await expectTexts(vocabulary);
  });

  it('lets no control token into a text', () => {
    const vocabulary = chatVocabulary(512);
    const control = chatTokenizer.specialToken('<|im_start|>')!;
    expect(bytesOfToken(vocabulary, control)).toHaveLength(0);
    for (const token of vocabulary.endTokens) expect(bytesOfToken(vocabulary, token)).toHaveLength(0);
  });

  it('spells the control token that begins calls', () => {
    const control = chatTokenizer.specialToken('<|im_start|>')!;
    const vocabulary = vocabularyOf({
      tokenizer: chatTokenizer,
      manifest: decoderManifest,
      spelledTokens: new Set([control]),
    });
    expect(Buffer.from(bytesOfToken(vocabulary, control)).toString()).toBe('<|im_start|>');
  });
});

describe('a vocabulary of SentencePiece', () => {
  const pieces = [
    '<unk>',
    '<s>',
    '</s>',
    '▁',
    '▁a',
    'b',
    '▁"',
    '":',
    '"',
    '":▁',
    '▁name',
    'name',
    '1',
    '2',
    '▁1',
  ];
  const vocabulary = vocabularyOf({
    tokenizer: sentencePieceTokenizer(pieces),
    // Not a multiple of 32, and padded as such models are.
    manifest: { vocabularySize: pieces.length + 256 + 40, endTokens: [2] },
    spelledTokens: new Set(),
  });
  const bytesOf = (token: number) => Buffer.from(bytesOfToken(vocabulary, token));

  it('takes ▁ as a space', () => {
    expect(bytesOf(pieces.indexOf('▁a')).toString()).toBe(' a');
    expect(bytesOf(pieces.indexOf('":▁')).toString()).toBe('": ');
  });

  it('takes <0xNN> as a byte', () => {
    expect([...bytesOf(pieces.length + 0xc3)]).toEqual([0xc3]);
    expect([...bytesOf(pieces.length)]).toEqual([0]);
  });

  it('writes texts that fit, also beyond ASCII', () => expectTexts(vocabulary));
});
