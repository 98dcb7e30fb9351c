import { Tokenizer as NativeTokenizer } from 'tokenizers';
import { expect, test } from 'vitest';
import { GgufMetadata } from '../../../../src/models/compile/gguf/gguf-metadata.js';
import { readGgufTokens } from '../../../../src/models/compile/gguf/gguf-tokenizer.js';
import { Tokenizer } from '../../../../src/worker/tokenizer.js';
// A vocabulary that SentencePiece 0.2 trained (BPE, byte fallback, dummy prefix, identity normalization), with the
// ids that SentencePiece itself gives to texts.
import reference from '../../../fixtures/gguf/sentencepiece.json' with { type: 'json' };

type Value = string | number | boolean | number[] | string[] | undefined;

function tokens(changes: Record<string, Value> = {}) {
  const values: Record<string, Value> = {
    'tokenizer.ggml.model': 'llama',
    'tokenizer.ggml.tokens': reference.tokens,
    'tokenizer.ggml.scores': reference.scores,
    'tokenizer.ggml.token_type': reference.types,
    'tokenizer.ggml.unknown_token_id': 0,
    'tokenizer.ggml.bos_token_id': 1,
    'tokenizer.ggml.eos_token_id': 2,
  };
  return readGgufTokens(new GgufMetadata('spm.gguf', { ...values, ...changes }));
}

test('texts have the tokens that SentencePiece gives them', async () => {
  const tokenizer = NativeTokenizer.fromString(tokens().tokenizerJson);
  for (const { text, ids } of reference.cases) {
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false });
    expect([...encoding.getIds()], JSON.stringify(text)).toEqual(ids);
  }
  expect(reference.cases.length).toBeGreaterThan(12);
});

test('tokens become the text that they were', async () => {
  const tokenizer = new Tokenizer(tokens().tokenizerJson);
  for (const { text, ids } of reference.cases) expect(tokenizer.decode(ids)).toBe(text);
});

test('what looks like a control token, or a byte, is text', async () => {
  const tokenizer = new Tokenizer(tokens().tokenizerJson);
  const typed = 'a <s> b </s> <|im_end|> <unk> <0x41>';
  const ids = await tokenizer.encode(typed);
  expect(ids.some((id) => id < 4)).toBe(false);
  expect(tokenizer.decode([...ids])).toBe(typed);
});

test('control tokens that are meant are one token', async () => {
  const tokenizer = new Tokenizer(tokens().tokenizerJson);
  expect(tokenizer.specialToken('<|im_end|>')).toBe(3);
  const ids = await tokenizer.encode(tokenizer.specials.mark('<s>Hi<|im_end|>'));
  expect([ids[0], ids.at(-1)]).toEqual([1, 3]);
});

test('the beginning token stands before a text unless the file says otherwise', async () => {
  const text = Int32Array.of(300, 301);
  expect([...new Tokenizer(tokens().tokenizerJson).format.single(text).tokens]).toEqual([1, 300, 301]);
  const without = tokens({ 'tokenizer.ggml.add_bos_token': false });
  expect([...new Tokenizer(without.tokenizerJson).format.single(text).tokens]).toEqual([300, 301]);
});

test('no space is put before a text where the file says so', async () => {
  const { tokenizerJson } = tokens({ 'tokenizer.ggml.add_space_prefix': false });
  const tokenizer = new Tokenizer(tokenizerJson);
  const ids = [...(await tokenizer.encode('water'))];
  expect(reference.tokens[ids[0]!]!.startsWith('▁')).toBe(false);
  expect(tokenizer.decode(ids)).toBe('water');
  expect(tokenizer.decode([...(await tokenizer.encode(' water'))])).toBe(' water');
});

test('bytes that are half a character are told as bytes', async () => {
  const tokenizer = new Tokenizer(tokens().tokenizerJson);
  const ids = [...(await tokenizer.encode('🙂'))];
  const bytes = ids.slice(1).map((id) => tokenizer.bytesOf(id)![0]);
  expect(Buffer.from(bytes as number[]).toString()).toBe('🙂');
});

test.each<[string, Record<string, Value>, RegExp]>([
  ['without scores', { 'tokenizer.ggml.scores': undefined }, /tokenizer\.ggml\.scores is missing/],
  [
    'without byte tokens',
    { 'tokenizer.ggml.tokens': reference.tokens.map((token) => token.replace('<0x0A>', 'newline')) },
    /the vocabulary has no <0x0A>/,
  ],
  [
    'with a flag that is none',
    { 'tokenizer.ggml.add_bos_token': 'yes' },
    /tokenizer\.ggml\.add_bos_token is not true or false/,
  ],
])('a vocabulary %s is refused', (_, changes, message) => {
  expect(() => tokens(changes)).toThrow(message);
});
