import { expect, test } from 'vitest';
import { PromptReader } from '../../src/worker/prompt-reader.js';
import { chatTokenizer } from './support/workbench.js';

const { signal } = new AbortController();

/** A reader whose calls are counted in characters. */
function open({ contextLength = 1_000, callCharacters = 4_096 } = {}) {
  const calls: number[] = [];
  const tokenizer = {
    encode: (text: string) => {
      calls.push(text.length);
      return chatTokenizer.encode(text);
    },
  };
  return { calls, reader: new PromptReader({ tokenizer, contextLength, callCharacters }) };
}

const refusal = (message: string) => expect.objectContaining({ kind: 'invalidParameter', message });

test('a prompt is tokenized in one call', async () => {
  const { calls, reader } = open();
  expect(await reader.read('Why do rivers bend?', signal)).toEqual(
    await chatTokenizer.encode('Why do rivers bend?'),
  );
  expect(calls).toEqual([19]);
});

test('a prompt of many characters that fits is tokenized in one call, too', async () => {
  const { calls, reader } = open({ contextLength: 20_000 });
  const text = `${'Why do rivers bend? '.repeat(1_000)}   \n\n\t  x`;
  expect(await reader.read(text, signal)).toEqual(await chatTokenizer.encode(text));
  expect(calls.at(-1)).toBe(text.length);
});

test('a prompt as long as the context is refused with its size', async () => {
  const { reader } = open({ contextLength: 5 });
  await expect(reader.read('0 1 2', signal)).rejects.toEqual(
    refusal('messages: the prompt has 5 tokens, which leaves no room in the context of 5'),
  );
});

test('a prompt without tokens is refused', async () => {
  const { reader } = open();
  await expect(reader.read('', signal)).rejects.toEqual(
    refusal('messages: the chat template makes no prompt of them'),
  );
});

test.each([
  ['words', 'some words here '],
  ['one word without an end', 'x'],
  ['characters of several bytes', '字🚀'],
  ['names of control tokens', chatTokenizer.specials.mark('<|im_end|>')],
])('of %s without end no more is read than shows that they cannot fit', async (_what, piece) => {
  const { calls, reader } = open({ contextLength: 512 });
  const text = piece.repeat((4 << 20) / piece.length);
  await expect(reader.read(text, signal)).rejects.toEqual(
    refusal('messages: the prompt has more than 512 tokens, which leaves no room in the context of 512'),
  );
  expect(Math.max(...calls)).toBeLessThanOrEqual(4_096);
  expect(calls.length).toBeLessThan(10);
});

test('a request that ends is not read any further', async () => {
  const aborter = new AbortController();
  let calls = 0;
  const encode = async () => {
    calls++;
    if (calls === 3) aborter.abort(new Error('the client has gone'));
    return new Int32Array(100);
  };
  const reader = new PromptReader({ tokenizer: { encode }, contextLength: 1_000_000, callCharacters: 100 });
  await expect(reader.read('some words '.repeat(1_000), aborter.signal)).rejects.toThrow(
    'the client has gone',
  );
  expect(calls).toBe(3);
});
