import { describe, expect, it } from 'vitest';
import { readChunk } from '../../bench/load/chunk.js';
import { EventLines, readText } from '../../bench/load/event-lines.js';

describe('event lines', () => {
  it('are put together from pieces cut anywhere, inside a character too', () => {
    const stream = Buffer.from(
      'data: {"a":"é𝄞"}\n\ndata:b\r\n\r\n: keep-alive\n\nevent: x\ndata: [DONE]\n\n',
    );
    for (let cut = 0; cut <= stream.length; cut++) {
      const lines = new EventLines();
      const found = [...lines.push(stream.subarray(0, cut)), ...lines.push(stream.subarray(cut))];

      expect(found.map(readText)).toEqual(['{"a":"é𝄞"}', 'b', '[DONE]']);
    }
  });

  it('wait for the rest of a line', () => {
    const lines = new EventLines();

    expect(lines.push(Buffer.from('data: [DO'))).toEqual([]);
    expect(lines.push(Buffer.from('NE]\n'))).toEqual(['[DONE]']);
  });
});

describe('a chunk', () => {
  const chunk = (delta: object, rest: object = {}) =>
    JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: null }], ...rest });

  it('is text when its delta has some', () => {
    expect(readChunk(chunk({ content: 'a' })).kind).toBe('text');
    expect(readChunk(chunk({ reasoning_content: 'a' })).kind).toBe('text');
    expect(readChunk('{"choices": [{"delta": {"content": "a"}}]}').kind).toBe('text');
    expect(readChunk(chunk({ content: '"completion_tokens":9' })).kind).toBe('text');
  });

  it('is no text when it only opens or ends the answer', () => {
    expect(readChunk(chunk({ role: 'assistant', content: '' })).kind).toBe('other');
    expect(readChunk(chunk({ role: 'assistant', content: null })).kind).toBe('other');
    expect(readChunk(chunk({}, { usage: null })).kind).toBe('other');
  });

  it('is usage when it counts tokens', () => {
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 12,
      prompt_tokens_details: { cached_tokens: 4 },
    };

    expect(readChunk(JSON.stringify({ choices: [], usage }))).toEqual({
      kind: 'usage',
      usage: { promptTokens: 9, outputTokens: 12, cachedTokens: 4 },
    });
  });

  it.each([
    ['{"code":50500,"message":"Broken.","data":null}', 'Broken.'],
    ['{"error":{"message":"Broken."}}', 'Broken.'],
    ['{"error":"Broken."}', 'Broken.'],
  ])('is an error when it is %s', (data, message) => {
    expect(readChunk(data)).toEqual({ kind: 'error', message });
  });

  it('is the end when it says so', () => {
    expect(readChunk('[DONE]').kind).toBe('done');
  });
});
