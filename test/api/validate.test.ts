import { describe, expect, it } from 'vitest';
import { validate } from '../../src/api/validate.js';
import { chatRequestSchema } from '../../src/contract/chat.js';
import { rerankRequestSchema } from '../../src/contract/rerank.js';

const message = { role: 'user', content: 'Hello' };

function chatError(fields: Record<string, unknown>): string {
  return errorOf(() => validate(chatRequestSchema, { model: 'm', messages: [message], ...fields }));
}

function errorOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

describe('a message about a parameter that is wrong', () => {
  it.each([
    [{ model: undefined }, 'model: is required'],
    [{ model: 5 }, 'model: must be a string, not 5'],
    [{ model: '' }, 'model: must not be empty'],
    [{ messages: [] }, 'messages: must not be empty'],
    [{ messages: 'Hello' }, 'messages: must be an array, not a string'],
    [{ messages: [message, null] }, 'messages[1]: must be an object, not null'],
    [
      { messages: [{ role: 'robot', content: 'Hello' }] },
      'messages[0].role: must be one of "system", "developer", "user", "assistant", "tool"',
    ],
    [
      { messages: [{ content: 'Hello' }] },
      'messages[0].role: must be one of "system", "developer", "user", "assistant", "tool"',
    ],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content: must be a string or an array of content parts'],
    [
      { messages: [{ role: 'user', content: null }] },
      'messages[0].content: must be a string or an array of content parts',
    ],
    [{ messages: [{ role: 'user', content: [] }] }, 'messages[0].content: must not be empty'],
    [
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'text' }] }] },
      'messages[0].content[1].text: is required',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'audio' }] }] },
      'messages[0].content[0].type: must be one of "text", "image_url"',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: 'http://x' }] }] },
      'messages[0].content[0].image_url: must be an object, not a string',
    ],
    [
      { messages: [{ role: 'assistant', content: null }] },
      'messages[0].content: may be null only in an assistant message with tool_calls',
    ],
    [{ messages: [{ role: 'tool', content: 'a' }] }, 'messages[0].tool_call_id: is required'],
    [{ stream: 'yes' }, 'stream: must be true or false, not a string'],
    [{ stream_options: { include_usage: 1 } }, 'stream_options.include_usage: must be true or false, not 1'],
    [{ max_tokens: 0 }, 'max_tokens: must be at least 1'],
    [{ max_tokens: 1.5 }, 'max_tokens: must be an integer, not 1.5'],
    [{ max_tokens: '5' }, 'max_tokens: must be a number, not a string'],
    [{ max_completion_tokens: -1 }, 'max_completion_tokens: must be at least 1'],
    [{ stop: '' }, 'stop: must not be empty'],
    [{ stop: ['a', ''] }, 'stop[1]: must not be empty'],
    [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop: must be a string or an array of at most 4 strings'],
    [{ stop: 7 }, 'stop: must be a string or an array of at most 4 strings'],
    [{ temperature: 2.1 }, 'temperature: must be at most 2'],
    [{ temperature: true }, 'temperature: must be a number, not true'],
    [{ top_p: 0 }, 'top_p: must be greater than 0'],
    [{ top_k: 0 }, 'top_k: must be -1 or an integer from 1 to 1000'],
    [{ min_p: -0.1 }, 'min_p: must be at least 0'],
    [{ frequency_penalty: 3 }, 'frequency_penalty: must be at most 2'],
    [{ presence_penalty: -3 }, 'presence_penalty: must be at least -2'],
    [{ seed: 0.5 }, 'seed: must be an integer, not 0.5'],
    [{ seed: 1e300 }, 'seed: must be at most 9007199254740991'],
    [{ n: 17 }, 'n: must be at most 16'],
    [{ top_logprobs: 21 }, 'top_logprobs: must be at most 20'],
    [{ logit_bias: { cat: 1 } }, 'logit_bias.cat: must be a token id'],
    [{ logit_bias: { 5: 101 } }, 'logit_bias["5"]: must be at most 100'],
    [
      { response_format: { type: 'xml' } },
      'response_format.type: must be one of "text", "json_object", "json_schema"',
    ],
    [
      { response_format: { type: 'json_schema', json_schema: { name: 'a' } } },
      'response_format.json_schema.schema: is required',
    ],
    [
      { tools: [{ type: 'function', function: { name: 'no spaces' } }] },
      'tools[0].function.name: must match ^[a-zA-Z0-9_-]{1,64}$',
    ],
    [{ tool_choice: 'never' }, 'tool_choice: must be "none", "auto", "required" or the function to call'],
    [{ tool_choice: { type: 'function', function: {} } }, 'tool_choice.function.name: is required'],
    [{ user: 5 }, 'user: must be a string, not 5'],
  ])('%j: %s', (fields, expected) => {
    expect(chatError(fields)).toBe(expected);
  });

  it('names an object among the documents by its place', () => {
    const request = { model: 'm', query: 'q', documents: ['a', 'b', 'c', { text: 'd' }] };
    expect(errorOf(() => validate(rerankRequestSchema, request))).toBe(
      'documents[3]: only strings are supported',
    );
  });

  it.each([
    [undefined, 'body: is required'],
    [null, 'body: must be an object, not null'],
    [[], 'body: must be an object, not an array'],
    ['text', 'body: must be an object, not a string'],
  ])('speaks of the body when that is %j', (body, expected) => {
    expect(errorOf(() => validate(chatRequestSchema, body))).toBe(expected);
  });
});

describe('a request that is right', () => {
  it('may have null wherever a field may be absent', () => {
    const nullable = Object.keys(chatRequestSchema.shape).filter(
      (name) => name !== 'model' && name !== 'messages',
    );
    const nulls = Object.fromEntries(nullable.map((name) => [name, null]));
    const messages = [
      { ...message, name: null },
      { role: 'assistant', content: 'a', tool_calls: null },
    ];
    const parsed = validate(chatRequestSchema, { model: 'm', messages, ...nulls });
    expect(JSON.parse(JSON.stringify(parsed.messages))).toEqual([
      message,
      { role: 'assistant', content: 'a' },
    ]);
  });

  it('loses the fields that are not in the contract', () => {
    const parsed = validate(chatRequestSchema, { model: 'm', messages: [message], surprise: 1 });
    expect(parsed).toEqual({ model: 'm', messages: [message] });
  });

  it('cannot reach a prototype', () => {
    const text =
      '{"model":"m","messages":[{"role":"user","content":"a"}],"metadata":{"__proto__":{"a":1}},"__proto__":{"n":3}}';
    const parsed = validate(chatRequestSchema, JSON.parse(text));
    expect(parsed.n).toBeUndefined();
    expect((parsed.metadata as Record<string, unknown>)['a']).toBeUndefined();
  });
});
