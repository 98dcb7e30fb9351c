import { expect, test } from 'vitest';
import { TextReader } from '../../src/worker/text-reader.js';

/** A token for each word: its length. */
const tokensOf = (text: string) => Int32Array.from(text.match(/\S+/g) ?? [], (word) => word.length);

function open({ callTexts = 3, callCharacters = 20 } = {}) {
  const calls: string[][] = [];
  const tokenizer = {
    encode: async (text: string) => {
      calls.push([text]);
      return tokensOf(text);
    },
    encodeBatch: async (texts: readonly string[]) => {
      calls.push([...texts]);
      return texts.map(tokensOf);
    },
  };
  return { calls, reader: new TextReader({ tokenizer, callTexts, callCharacters }) };
}

const { signal } = new AbortController();

async function readAll(reader: TextReader, texts: readonly string[], maxTokens = 100) {
  const read = [];
  for await (const each of reader.read(texts, { maxTokens, signal })) read.push(...each);
  return read.map(({ text, tokens }) => [text, [...tokens]]);
}

test('texts come back in order with their tokens', async () => {
  const { reader } = open();
  const texts = ['a bb', '', 'ccc', 'd'.repeat(12), 'e f', 'word '.repeat(9), 'g'];
  expect(await readAll(reader, texts)).toEqual(texts.map((text) => [text, [...tokensOf(text)]]));
});

test('a call takes so many texts, and so many characters', async () => {
  const { calls, reader } = open();
  await readAll(reader, ['a', 'b', 'c', 'd', 'e'.repeat(20), 'f']);
  expect(calls).toEqual([['a', 'b', 'c'], ['d'], ['e'.repeat(20)], ['f']]);
});

test('a long text is read in pieces until there are tokens enough', async () => {
  const { calls, reader } = open();
  const long = 'one two three four five six seven eight nine ten';
  expect(await readAll(reader, [long], 5)).toEqual([[long, [3, 3, 5, 4, 4, 3, 5]]]);
  expect(calls).toEqual([['one two three four'], [' five six seven']]);
});

test('no text is no call', async () => {
  const { calls, reader } = open();
  expect(await readAll(reader, [])).toEqual([]);
  expect(calls).toEqual([]);
});

test('reading ends between two calls when its signal aborts', async () => {
  const { calls, reader } = open();
  const aborter = new AbortController();
  const reading = async () => {
    for await (const _ of reader.read(['a', 'b', 'c', 'd'], { maxTokens: 9, signal: aborter.signal })) {
      aborter.abort(new Error('gone'));
    }
  };
  await expect(reading()).rejects.toThrow('gone');
  expect(calls).toHaveLength(1);
});
