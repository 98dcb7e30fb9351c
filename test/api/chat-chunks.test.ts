import { describe, expect, it } from 'vitest';
import { ChatChunks } from '../../src/api/chat-chunks.js';
import type { ReplyFrame } from '../../src/api/reply.js';
import { type ChatChunk, chatChunkSchema } from '../../src/contract/chat.js';

const spent = { promptTokens: 5, completionTokens: 2, cachedTokens: 1 };
const usage = {
  prompt_tokens: 5,
  completion_tokens: 2,
  total_tokens: 7,
  prompt_tokens_details: { cached_tokens: 1 },
};

const address = { id: 'r', attempt: 1, sequence: 0 };
const started: ReplyFrame = { ...address, type: 'started', workerId: 'w', queueMs: 1 };
const text = (value: string, choice = 0): ReplyFrame => ({
  ...address,
  type: 'delta',
  choice,
  text: value,
  tokens: 1,
});
const finish = (choice = 0): ReplyFrame => ({ ...address, type: 'finish', choice, reason: 'stop' });
const done: ReplyFrame = {
  ...address,
  type: 'done',
  spent,
  timings: { queueMs: 1, firstTokenMs: 1, totalMs: 1 },
};

function chunker(includeUsage = false): ChatChunks {
  return new ChatChunks({ id: 'chatcmpl-"1', model: 'a "model"', created: 7, includeUsage });
}

/** The data of each event; throws when the text is not whole events. */
function dataOf(events: string): string[] {
  expect(events).toMatch(/^(data: [^\n]+\n\n)*$/);
  return events
    .split('\n\n')
    .slice(0, -1)
    .map((event) => event.slice('data: '.length));
}

function chunksOf(events: string): ChatChunk[] {
  return dataOf(events)
    .filter((data) => data !== '[DONE]')
    .map((data) => chatChunkSchema.parse(JSON.parse(data)));
}

describe('the events of a stream', () => {
  it('carry the calls of tools as they come, behind the text before them', () => {
    const call = {
      index: 0,
      id: 'call_1',
      type: 'function' as const,
      function: { name: 'a', arguments: '' },
    };
    const more = { index: 0, function: { arguments: '{}' } };
    const delta = { ...address, type: 'delta' as const, choice: 0, tokens: 1 };
    const events = chunker().format([
      started,
      { ...delta, text: 'Well', toolCalls: [call] },
      { ...delta, text: '', toolCalls: [more] },
      { ...delta, choice: 1, text: '', toolCalls: [call, more] },
    ]);
    expect(chunksOf(events).map(({ choices }) => choices[0])).toEqual([
      { index: 0, delta: { role: 'assistant', content: 'Well' }, finish_reason: null },
      { index: 0, delta: { tool_calls: [call] }, finish_reason: null },
      { index: 0, delta: { tool_calls: [more] }, finish_reason: null },
      { index: 1, delta: { role: 'assistant', content: null, tool_calls: [call] }, finish_reason: null },
      { index: 1, delta: { tool_calls: [more] }, finish_reason: null },
    ]);
  });

  it('begin with the role and end with the reason, the usage and [DONE]', () => {
    const events = chunker().format([started, text('a'), text('b'), finish(), done]);
    expect(chunksOf(events).map(({ choices, usage }) => ({ ...choices[0], usage }))).toEqual([
      { index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null, usage: undefined },
      { index: 0, delta: { content: 'b' }, finish_reason: null, usage: undefined },
      { index: 0, delta: {}, finish_reason: 'stop', usage },
    ]);
    expect(dataOf(events).at(-1)).toBe('[DONE]');
  });

  it('all carry one id, model and time', () => {
    const chunks = chunksOf(chunker().format([text('a'), text('b'), finish(), done]));
    for (const chunk of chunks) {
      expect(chunk).toMatchObject({ id: 'chatcmpl-"1', model: 'a "model"', created: 7 });
    }
  });

  it('are the same however the frames are spread over turns', () => {
    const frames = [started, text('a'), text('b'), finish(), done];
    const chunks = chunker();
    expect(frames.map((frame) => chunks.format([frame])).join('')).toBe(chunker().format(frames));
  });

  it('keep line breaks and quotes inside one line', () => {
    const [chunk] = chunksOf(chunker().format([text('a\n\n"b"\u2028')]));
    expect(chunk!.choices[0]!.delta.content).toBe('a\n\n"b"\u2028');
  });

  it('include the usage once more, without choices, when that is asked for', () => {
    const chunks = chunksOf(chunker(true).format([text('a'), finish(), done]));
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
    expect(chunks.at(-2)).toMatchObject({ choices: [{ finish_reason: 'stop' }], usage });
  });

  it('name the role of a choice that ends without text', () => {
    const chunks = chunksOf(chunker().format([started, finish(), done]));
    expect(chunks.map(({ choices }) => choices[0]!.delta)).toEqual([{ role: 'assistant', content: '' }, {}]);
  });

  it('name the role of every choice, and carry the usage with the last that ends', () => {
    const chunks = chunksOf(
      chunker().format([text('a', 1), text('b', 0), finish(1), text('c', 0), finish(0), done]),
    );
    expect(chunks.map(({ choices }) => [choices[0]!.index, choices[0]!.delta.role])).toEqual([
      [1, 'assistant'],
      [0, 'assistant'],
      [0, undefined],
      [1, undefined],
      [0, undefined],
    ]);
    expect(chunks.map(({ usage }) => usage !== undefined)).toEqual([false, false, false, false, true]);
  });

  it('begin anew when the job was run again before anything was sent', () => {
    const chunks = chunker();
    chunks.format([started, finish()]);
    const events = chunks.format([started, text('new'), finish(), done]);
    expect(chunksOf(events).map(({ choices }) => choices[0]!.delta)).toEqual([
      { role: 'assistant', content: 'new' },
      {},
    ]);
  });

  it('carry log-probabilities with the text they belong to', () => {
    const logprob = { token: 'a', logprob: -0.5, bytes: [97], top_logprobs: [] };
    const frame: ReplyFrame = {
      ...address,
      type: 'delta',
      choice: 0,
      text: 'a',
      tokens: 1,
      logprobs: [logprob],
    };
    const [chunk] = chunksOf(chunker().format([frame]));
    expect(chunk!.choices[0]!.logprobs).toEqual({ content: [logprob] });
  });
});
