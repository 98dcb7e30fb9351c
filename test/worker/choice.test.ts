import { expect, test } from 'vitest';
import type { TokenEvent } from '../../src/engine/request.js';
import { Choice, type ChoiceStep } from '../../src/worker/choice.js';
import { chatTokenizer } from './support/workbench.js';

const tokenOf = new Map(
  Array.from(
    { length: 512 },
    (_, token) => [[...(chatTokenizer.bytesOf(token) ?? [])].join(), token] as const,
  ),
);
/** A text as tokens of one byte each. */
const byteTokens = (text: string) =>
  [...new TextEncoder().encode(text)].map((byte) => tokenOf.get(String(byte))!);

function steps(stops: string[], text: string, finish: TokenEvent['finish']): ChoiceStep[] {
  const choice = new Choice({ tokenizer: chatTokenizer, stops, logprobs: true });
  const tokens = byteTokens(text);
  const results: ChoiceStep[] = [];
  for (const [index, token] of tokens.entries()) {
    if (choice.finished) break;
    const isLast = index === tokens.length - 1;
    results.push(
      choice.push({ type: 'token', id: '', choice: 0, token, logprob: -index, ...(isLast && { finish }) }),
    );
  }
  return results;
}

const sent = (results: ChoiceStep[]) =>
  results.flatMap(({ delta }) =>
    delta === undefined ? [] : [[delta.text, delta.tokens, delta.logprobs?.map(({ logprob }) => -logprob)]],
  );

test('log-probabilities come with the text of their tokens', () => {
  expect(sent(steps([], 'ab', 'length'))).toEqual([
    ['a', 1, [0]],
    ['b', 1, [1]],
  ]);
});

test('the tokens of a character share its text', () => {
  expect(sent(steps([], 'é!', 'length'))).toEqual([
    ['é', 2, [0, 1]],
    ['!', 1, [2]],
  ]);
});

test('log-probabilities of text held back wait with it', () => {
  expect(sent(steps(['bcd'], 'abcx', 'length'))).toEqual([
    ['a', 1, [0]],
    ['bcx', 3, [1, 2, 3]],
  ]);
});

test('log-probabilities of a stop sequence are not sent', () => {
  expect(sent(steps(['bc'], 'abcx', 'length'))).toEqual([['a', 1, [0]]]);
});

test('log-probabilities of unfinished bytes come at the end', () => {
  const choice = new Choice({ tokenizer: chatTokenizer, stops: [], logprobs: true });
  const [first] = byteTokens('é') as [number];
  const { delta } = choice.push({
    type: 'token',
    id: '',
    choice: 0,
    token: first,
    logprob: -1,
    finish: 'length',
  });
  expect(delta).toEqual({
    text: '\ufffd',
    tokens: 1,
    logprobs: [{ token: '\ufffd', bytes: [0xc3], logprob: -1, top_logprobs: [] }],
  });
});
