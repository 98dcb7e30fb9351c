import { describe, expect, test } from 'vitest';
import type { ToolCallDelta } from '../../src/contract/chat.js';
import type { TokenEvent } from '../../src/engine/request.js';
import { Choice, type ChoiceStep } from '../../src/worker/choice.js';
import { chatTokenizer } from './support/workbench.js';
import { formats } from './tools/formats.js';

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

describe('a choice that may hold calls', () => {
  const end = chatTokenizer.specialToken('<|im_end|>')!;
  const call = '<tool_call>\n{"name": "a", "arguments": {"x": "b"}}\n</tool_call>';

  /** Says a text token by token, and then what ends it. */
  function say(text: string, finish: 'end' | 'length', { stops = [] as string[], logprobs = false } = {}) {
    const choice = new Choice({
      tokenizer: chatTokenizer,
      stops,
      logprobs,
      tools: { format: formats.hermes, spelledTokens: new Set(), required: false },
    });
    const events = byteTokens(text).map((token, index, { length }) => ({
      token,
      logprob: -index,
      ...(finish === 'length' && index === length - 1 && { finish }),
    }));
    const all = finish === 'end' ? [...events, { token: end, finish }] : events;
    const results = all.map((event) => choice.push({ type: 'token', id: '', choice: 0, ...event }));
    return {
      text: results.map(({ delta }) => delta?.text ?? '').join(''),
      tokens: results.reduce((sum, { delta }) => sum + (delta?.tokens ?? 0), 0),
      calls: results.flatMap(({ delta }) => delta?.toolCalls ?? []),
      logprobs: results.flatMap(({ delta }) => delta?.logprobs ?? []),
      finish: results.at(-1)!.finish,
      length: all.length,
    };
  }

  const argumentsOf = (calls: readonly ToolCallDelta[], of: number) =>
    calls.map(({ index, function: part }) => (index === of ? (part.arguments ?? '') : '')).join('');

  test('brings their name and id first, then their arguments in pieces, and ends in tool_calls', () => {
    const { text, calls, finish } = say(`Well. ${call}\n${call}`, 'end');
    expect(text).toBe('Well. ');
    expect(finish).toBe('tool_calls');
    const heads = calls.filter(({ id }) => id !== undefined);
    expect(heads).toEqual(
      [0, 1].map((index) => ({
        index,
        id: expect.stringMatching(/^call_[0-9a-f]{24}$/),
        type: 'function',
        function: { name: 'a', arguments: '' },
      })),
    );
    expect(heads[0]!.id).not.toBe(heads[1]!.id);
    for (const index of [0, 1]) expect(argumentsOf(calls, index)).toBe('{"x": "b"}');
    expect(calls.length).toBeGreaterThan(4);
  });

  test('ends in length when a call is cut off, with what of it has come', () => {
    const { calls, finish } = say(call.slice(0, call.indexOf('b"')), 'length');
    expect(finish).toBe('length');
    expect(argumentsOf(calls, 0)).toBe('{"x": "');
  });

  test('ends in stop when it called nothing, and keeps what only looked like a call', () => {
    expect(say('a <tool_cal', 'end')).toMatchObject({ text: 'a <tool_cal', calls: [], finish: 'stop' });
  });

  test('looks for stop sequences in its text and not in its calls', () => {
    const { calls, finish } = say(call, 'end', { stops: ['b', 'x"', '<tool_call>'] });
    expect(argumentsOf(calls, 0)).toBe('{"x": "b"}');
    expect(finish).toBe('tool_calls');
  });

  test('counts every token, and brings the log-probabilities of every one that is text or call', () => {
    const { tokens, logprobs, length } = say(call, 'end', { logprobs: true });
    expect(tokens).toBe(length);
    expect(logprobs.map(({ logprob }) => -logprob)).toEqual(byteTokens(call).map((_, index) => index));
  });
});
