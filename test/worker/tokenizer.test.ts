import { describe, expect, test } from 'vitest';
import { Tokenizer } from '../../src/worker/tokenizer.js';
import { fixtureTokenizer, readFixture } from './support/fixture-model.js';

const xlmRoberta = fixtureTokenizer('encoder/xlm-roberta-cross-encoder');
const llama = fixtureTokenizer('decoder/llama-tied');
const bert = fixtureTokenizer('encoder/bert-cross-encoder');

const added = (id: number, content: string, special: boolean) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special,
});

describe('spellings of control tokens are ordinary text', () => {
  test('also where the model itself would prefer them (Unigram)', async () => {
    const end = 2;
    expect(xlmRoberta.specialToken('</s>')).toBe(end);
    expect(await xlmRoberta.encode('a </s> b')).not.toContain(end);
    expect(await xlmRoberta.encode(xlmRoberta.specials.mark('a </s> b'))).toContain(end);
  });

  test('also where merges lead to them (BPE)', async () => {
    const vocabulary = ['<', 's', '>', '<s', '<s>', 's>'];
    const tokenizer = new Tokenizer(
      JSON.stringify({
        version: '1.0',
        added_tokens: [added(4, '<s>', true)],
        model: {
          type: 'BPE',
          vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
          merges: ['< s', '<s >', 's >'],
        },
      }),
    );
    expect([...(await tokenizer.encode('<s>'))]).toEqual([3, 2]);
    expect([...(await tokenizer.encode(tokenizer.specials.mark('<s><s>')))]).toEqual([4, 4]);
  });

  test('and WordPiece gives what it gives to any text', async () => {
    expect(await bert.encode('[SEP]')).not.toContain(bert.specialToken('[SEP]'));
  });

  test('while added tokens that control nothing are recognized in any text', async () => {
    const file = JSON.parse(readFixture('decoder/llama-tied', 'tokenizer.json'));
    file.added_tokens.push(added(512, '<tool_call>', false));
    const tokenizer = new Tokenizer(JSON.stringify(file));
    expect([...(await tokenizer.encode('<tool_call>'))]).toEqual([512]);
    expect(tokenizer.specialToken('<tool_call>')).toBeUndefined();
  });
});

test('of two spellings that begin alike the longer is marked', async () => {
  const file = JSON.parse(readFixture('decoder/llama-tied', 'tokenizer.json'));
  file.added_tokens.push(added(512, '<|im_end|>!', true));
  const tokenizer = new Tokenizer(JSON.stringify(file));
  expect([...(await tokenizer.encode(tokenizer.specials.mark('<|im_end|>!<|im_end|>')))]).toEqual([512, 2]);
});

test('truncation and padding of the published file are not applied', async () => {
  const file = JSON.parse(readFixture('encoder/bert-cross-encoder', 'tokenizer.json'));
  file.truncation = { direction: 'Right', max_length: 4, strategy: 'LongestFirst', stride: 0 };
  file.padding = {
    strategy: { Fixed: 8 },
    direction: 'Right',
    pad_id: 0,
    pad_type_id: 0,
    pad_token: '[PAD]',
  };
  const text = 'how many people live there?';
  expect(await new Tokenizer(JSON.stringify(file)).encode(text)).toEqual(await bert.encode(text));
});

test('many texts are encoded as each alone', async () => {
  const texts = ['one', '', 'two three'];
  expect(await llama.encodeBatch(texts)).toEqual(await Promise.all(texts.map((text) => llama.encode(text))));
});

test('a token tells its bytes, and a control token its published spelling', async () => {
  const [first] = await llama.encode('\n');
  expect(llama.bytesOf(first!)).toEqual(Uint8Array.of(0x0a));
  expect(llama.spellingOf(first!)).toBeUndefined();
  expect(llama.spellingOf(2)).toBe('<|im_end|>');
});

test('what is not a tokenizer file is refused', () => {
  expect(() => new Tokenizer('{}')).toThrow();
});

describe('the format of encoder input', () => {
  const a = Int32Array.of(100, 101);
  const b = Int32Array.of(102);

  test('is [CLS] a [SEP] b [SEP] with types for BERT', () => {
    expect(bert.format.single(a)).toEqual({
      tokens: Int32Array.of(2, 100, 101, 3),
      types: Int32Array.of(0, 0, 0, 0),
    });
    expect(bert.format.pair(a, b)).toEqual({
      tokens: Int32Array.of(2, 100, 101, 3, 102, 3),
      types: Int32Array.of(0, 0, 0, 0, 1, 1),
    });
    expect([bert.format.singleOverhead, bert.format.pairOverhead]).toEqual([2, 3]);
  });

  test('is <s> a </s></s> b </s> for XLM-RoBERTa', () => {
    expect(xlmRoberta.format.pair(a, b).tokens).toEqual(Int32Array.of(0, 100, 101, 2, 2, 102, 2));
    expect(xlmRoberta.format.pairOverhead).toBe(4);
  });

  test.each([
    ['BertProcessing', [2, 100, 3, 101, 3], [0, 0, 0, 1, 1]],
    ['RobertaProcessing', [2, 100, 3, 3, 101, 3], [0, 0, 0, 0, 0, 0]],
  ])('is read from a %s inside a sequence of processors', (type, tokens, types) => {
    const file = JSON.parse(readFixture('encoder/bert-cross-encoder', 'tokenizer.json'));
    file.post_processor = {
      type: 'Sequence',
      processors: [
        { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
        { type, sep: ['[SEP]', 3], cls: ['[CLS]', 2], trim_offsets: true, add_prefix_space: false },
      ],
    };
    const pair = new Tokenizer(JSON.stringify(file)).format.pair(Int32Array.of(100), Int32Array.of(101));
    expect(pair).toEqual({ tokens: Int32Array.from(tokens), types: Int32Array.from(types) });
  });

  test('begins with the control tokens that stand before every text', () => {
    expect(xlmRoberta.tokensBefore()).toEqual(Int32Array.of(0));
    expect(bert.tokensBefore()).toEqual(Int32Array.of(bert.specialToken('[CLS]')!));
    expect(llama.tokensBefore()).toEqual(new Int32Array(0));
  });

  test('is the bare text where the tokenizer adds nothing', () => {
    expect(llama.format.pair(a, b).tokens).toEqual(Int32Array.of(100, 101, 102));
  });
});
