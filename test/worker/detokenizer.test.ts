import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Detokenizer } from '../../src/worker/detokenizer.js';
import type { Tokenizer } from '../../src/worker/tokenizer.js';
import { fixtureTokenizer, readFixture } from './support/fixture-model.js';
import { sentencePieceTokenizer } from './support/sentencepiece.js';

const byteLevel = fixtureTokenizer('decoder/llama-tied');
const wordPiece = fixtureTokenizer('encoder/bert-cross-encoder');
const metaspace = fixtureTokenizer('encoder/xlm-roberta-cross-encoder');

const pieces = ['<unk>', '<s>', '</s>', '▁', '▁Hello', '▁world', '!', 'x', '\ufffd'];
const byteFallback = sentencePieceTokenizer(pieces);
const piece = (text: string) => pieces.indexOf(text);
const utf8 = (text: string) => [...new TextEncoder().encode(text)].map((byte) => pieces.length + byte);

/** The tokens of the byte-level vocabulary that stand for one byte, in the order of the text's bytes. */
const tokenOfByte = new Map(
  Array.from({ length: 512 }, (_, token) => [byteLevel.bytesOf(token)!, token] as const)
    .filter(([value]) => value.length === 1)
    .map(([value, token]) => [value[0]!, token]),
);
const byteTokens = (text: string) =>
  [...new TextEncoder().encode(text)].map((byte) => tokenOfByte.get(byte)!);

/** What each token gives, and what the end gives. */
function stream(tokenizer: Tokenizer, tokens: Iterable<number>): string[] {
  const detokenizer = new Detokenizer(tokenizer);
  return [...Array.from(tokens, (token) => detokenizer.push(token)), detokenizer.flush()];
}

const expectedSchema = z.object({
  cases: z.array(z.object({ greedy_ids: z.array(z.int()), greedy_text: z.string() })),
});
const { cases } = expectedSchema.parse(JSON.parse(readFixture('decoder/llama-tied', 'expected.json')));
const samples = [
  'How many people live in Berlin?',
  '机器学习模型按请求排队',
  'Привет, мир! 🚀👩‍👩‍👧 émoji naïve café',
  '\ufeffa byte order mark\n\n  and spaces ',
];

describe('byte-level vocabulary', () => {
  test.each(cases)('text is the reference implementation’s: $greedy_text', ({ greedy_ids, greedy_text }) => {
    expect(stream(byteLevel, greedy_ids).join('')).toBe(greedy_text);
  });

  test.each(samples)('a text comes back as it was: %s', async (sample) => {
    expect(stream(byteLevel, await byteLevel.encode(sample)).join('')).toBe(sample);
  });

  test.each(samples)('every piece is whole characters: %s', async (sample) => {
    for (const text of stream(byteLevel, await byteLevel.encode(sample))) {
      expect(text).not.toMatch(/\ufffd|\p{Surrogate}/u);
    }
  });

  test('a character of several tokens comes with its last one', () => {
    expect(stream(byteLevel, byteTokens('🚀'))).toEqual(['', '', '', '🚀', '']);
  });

  test('bytes that never become a character are U+FFFD at the end', () => {
    expect(stream(byteLevel, byteTokens('🚀').slice(0, 2))).toEqual(['', '', '\ufffd']);
  });

  test('bytes that cannot become a character any more do not wait', () => {
    const [first] = byteTokens('🚀') as [number];
    const [letter] = byteTokens('a') as [number];
    expect(stream(byteLevel, [first, letter, first])).toEqual(['', '\ufffda', '', '\ufffd']);
  });

  test('a replacement character that the model wrote is text like any other', async () => {
    expect(stream(byteLevel, await byteLevel.encode('\ufffd')).join('')).toBe('\ufffd');
  });

  test('control tokens are no text', async () => {
    const end = byteLevel.specialToken('<|im_end|>')!;
    expect(stream(byteLevel, [end, ...(await byteLevel.encode('a')), end]).join('')).toBe('a');
  });

  test('ids outside the vocabulary are no text', () => {
    expect(stream(byteLevel, [100_000])).toEqual(['', '']);
  });
});

describe('SentencePiece-style vocabulary', () => {
  test('the first space is the decoder’s to take, and no other', () => {
    const tokens = [piece('▁Hello'), piece('▁world'), piece('!'), piece('▁'), piece('▁Hello')];
    expect(stream(byteFallback, tokens)).toEqual(['Hello', ' world', '!', ' ', ' Hello', '']);
  });

  test('a character in bytes comes with its last byte, also after another in bytes', () => {
    const tokens = [piece('▁Hello'), ...utf8('你好'), piece('▁world')];
    expect(stream(byteFallback, tokens)).toEqual(['Hello', '', '', '你', '', '', '好', ' world', '']);
  });

  test('a space after bytes stays', () => {
    expect(stream(byteFallback, [...utf8('é'), piece('▁world')])).toEqual(['', 'é', ' world', '']);
  });

  test('unfinished bytes become U+FFFD when text follows, and whole characters before them stay', () => {
    const tokens = [...utf8('你'), utf8('好')[0]!, piece('x')];
    expect(stream(byteFallback, tokens)).toEqual(['', '', '你', '', '\ufffdx', '']);
  });

  test('control tokens between words change nothing', () => {
    expect(stream(byteFallback, [piece('▁Hello'), piece('</s>'), piece('▁world')]).join('')).toBe(
      'Hello world',
    );
  });
});

test.each([
  ['WordPiece', wordPiece],
  ['Metaspace', metaspace],
])('%s: the pieces are what the decoder makes of the whole', async (_name, tokenizer) => {
  const tokens = await tokenizer.encode('The mill race, and all of the 3,520,031 inhabitants, queue!');
  expect(stream(tokenizer, tokens).join('')).toBe(tokenizer.decode([...tokens]));
});
