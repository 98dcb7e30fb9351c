import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gguf } from '@huggingface/gguf';
import { Tokenizer } from 'tokenizers';
import { expect, test } from 'vitest';
import { GgufMetadata } from '../../../../src/models/compile/gguf/gguf-metadata.js';
import { readGgufTokens } from '../../../../src/models/compile/gguf/gguf-tokenizer.js';

const fixtures = join(dirname(fileURLToPath(import.meta.url)), '../../../fixtures');
const path = join(fixtures, 'gguf/llama-tied-q8_0.gguf');
const metadata: object = (await gguf(path, { allowLocalFile: true })).metadata;
const tokenTypes = new GgufMetadata(path, { ...metadata }).numbers('tokenizer.ggml.token_type')!;

function rebuilt(changes: Record<string, string | number[] | undefined> = {}) {
  return readGgufTokens(new GgufMetadata(path, { ...metadata, ...changes })).tokenizerJson;
}

async function pieces(tokenizerJson: string, text: string): Promise<string[]> {
  const encoding = await Tokenizer.fromString(tokenizerJson).encode(text, null, { addSpecialTokens: false });
  return encoding.getTokens();
}

const texts = [
  'Hello, world! The queue holds the work.',
  'On 2024-11-21 at 09:30 there were 1234567 requests, ½ of them ²fast.',
  'def step(batch):\n    return [sample(row) for row in run(batch)]\n\n\n',
  'emoji 🙂👩‍💻🇩🇪 and combining e\u0301 a\u0308',
  '机器学习是人工智能的一个分支。 日本語 한국어 العربية',
  'Привет, мир! Ещё раз — и всё.',
  `long${' '.repeat(60)}white\n${' '.repeat(40)}space${'\t'.repeat(9)}`,
  '   leading,  double   triple\t\ttabs\r\n\r\nlines \n \n end   ',
  "I'm can't WE'LL they've it's",
  '<|im_start|>user\nhi<|im_end|>\n<|endoftext|>',
  '',
];

test('the rebuilt tokenizer has the vocabulary, merges and pre-tokenizer of the original', async () => {
  const original = JSON.parse(await readFile(join(fixtures, 'decoder/llama-tied/tokenizer.json'), 'utf8'));
  const tokenizer = JSON.parse(rebuilt());
  expect(tokenizer.model).toEqual(original.model);
  expect(tokenizer.pre_tokenizer).toEqual(original.pre_tokenizer);
  expect(tokenizer.added_tokens).toEqual(original.added_tokens);
  expect(tokenizer.normalizer).toBeNull();
});

test('the rebuilt tokenizer gives the tokens of the original, and its texts', async () => {
  const original = await readFile(join(fixtures, 'decoder/llama-tied/tokenizer.json'), 'utf8');
  const [ours, theirs] = [Tokenizer.fromString(rebuilt()), Tokenizer.fromString(original)];
  for (const text of texts) {
    const expected = (await theirs.encode(text)).getIds();
    expect((await ours.encode(text)).getIds(), text).toEqual(expected);
    expect(await ours.decode(expected, false)).toBe(await theirs.decode(expected, false));
  }
});

test('control tokens are special; user-defined ones are whole but part of the text', () => {
  const types = [...tokenTypes];
  types[1] = 4;
  const added = JSON.parse(rebuilt({ 'tokenizer.ggml.token_type': types })).added_tokens;
  expect(added.map(({ id, special }: { id: number; special: boolean }) => [id, special])).toEqual([
    [0, true],
    [1, false],
    [2, true],
  ]);
});

test('unused tokens are not in the vocabulary', () => {
  const types = [...tokenTypes];
  types[0] = 5;
  const tokenizer = JSON.parse(rebuilt({ 'tokenizer.ggml.token_type': types }));
  expect(tokenizer.model.vocab['<|endoftext|>']).toBeUndefined();
  expect(tokenizer.added_tokens).toHaveLength(2);
});

/** Where a pre-tokenizer splits, seen through a vocabulary that merges nothing across the parts under test. */
const splits: ReadonlyArray<[string, string, readonly string[]]> = [
  ['gpt-2', "I'LL pay 1234 now\n\n!", ['I', "'", 'LL', ' pay', ' 1234', ' now', '\n', '\n', '!']],
  ['smollm', "we'll pay 1234", ['we', "'ll", ' pay', ' ', '1', '2', '3', '4']],
  ['qwen2', "I'LL pay 1234!\n\nnow", ['I', "'LL", ' pay', ' ', '1', '2', '3', '4', '!\n\n', 'now']],
  ['deepseek-r1-qwen', 'pay 12', ['pay', ' ', '1', '2']],
  ['llama-bpe', "I'LL pay 1234567 now", ['I', "'LL", ' pay', ' ', '123', '456', '7', ' now']],
  ['default', 'a<b 1234 c', ['a', '<', 'b', ' ', '123', '4', ' c']],
];

for (const [pre, text, expected] of splits) {
  test(`the pre-tokenizer ${pre} splits where its model does`, async () => {
    const tokenizer = JSON.parse(rebuilt({ 'tokenizer.ggml.pre': pre }));
    // Every expected piece becomes one token that ends merging; whatever else were split would show as other tokens.
    tokenizer.model.ignore_merges = true;
    tokenizer.model.merges = [];
    const vocab = Object.fromEntries([...byteCharacters()].map((character, id) => [character, id]));
    for (const piece of expected) {
      vocab[byteLevel(piece)] ??= Object.keys(vocab).length;
    }
    tokenizer.model.vocab = vocab;
    tokenizer.added_tokens = [];
    expect(await pieces(JSON.stringify(tokenizer), text)).toEqual(expected.map(byteLevel));
  });
}

test('only the vocabulary of Llama 3 takes a whole piece whatever the merges say', () => {
  const ignoring = splits.map(
    ([pre]) => JSON.parse(rebuilt({ 'tokenizer.ggml.pre': pre })).model.ignore_merges,
  );
  expect(ignoring).toEqual(splits.map(([pre]) => pre === 'llama-bpe'));
});

test('Qwen composes characters first', async () => {
  const composed = await pieces(rebuilt({ 'tokenizer.ggml.pre': 'qwen2' }), 'e\u0301');
  expect(composed).toEqual(await pieces(rebuilt({ 'tokenizer.ggml.pre': 'qwen2' }), '\u00e9'));
});

test('a file that names no pre-tokenizer gets the default one', () => {
  expect(rebuilt({ 'tokenizer.ggml.pre': undefined })).toBe(rebuilt({ 'tokenizer.ggml.pre': 'default' }));
});

/** The printable stand-ins of the 256 bytes in a byte-level vocabulary. */
function byteCharacters(): string[] {
  const printable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}

function byteLevel(text: string): string {
  const characters = byteCharacters();
  return [...Buffer.from(text)].map((byte) => characters[byte]).join('');
}
