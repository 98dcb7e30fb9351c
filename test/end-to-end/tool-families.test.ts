import ajvModule from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChatChunk, chatChunkSchema, type ToolCall } from '../../src/contract/chat.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import {
  hermesTemplate,
  mistralTemplate,
  severalLlamaTemplate,
  singleLlamaTemplate,
} from '../support/tool-templates.js';
import { fixtureTokenizer } from '../worker/support/fixture-model.js';
import { events, TestService } from './test-service.js';

const toolModels = {
  hermes: hermesTemplate,
  'llama-single': singleLlamaTemplate,
  'llama-several': severalLlamaTemplate,
  mistral: mistralTemplate,
};
type Family = keyof typeof toolModels;
const families = Object.keys(toolModels) as Family[];
/** What a model of a family writes between two calls that nothing else there begins with. */
const separators: Record<Family, string> = {
  hermes: '<',
  'llama-single': ';',
  'llama-several': ';',
  mistral: ',',
};
/** Token 0 of these models begins calls. */
const begin = { '0': 100 };
const maxCalls = 32;

const parameters = {
  type: 'object',
  properties: { city: { enum: ['Oslo', 'São Paulo'] }, days: { type: 'integer', minimum: 1, maximum: 9 } },
  required: ['city', 'days'],
  additionalProperties: false,
};
const weather = { type: 'function', function: { name: 'get_weather', parameters } };
const now = { type: 'function', function: { name: 'now' } };
const tools = [weather, now];
const ajv = new ajvModule.default({ strict: false });
const fits: Record<string, (value: unknown) => boolean> = {
  get_weather: ajv.compile(parameters),
  now: ajv.compile({ type: 'object', maxProperties: 0 }),
};

function expectSound(calls: readonly ToolCall[] | undefined): void {
  expect(calls).toBeDefined();
  for (const { function: called } of calls!) {
    expect(fits[called.name]!(JSON.parse(called.arguments)), called.arguments).toBe(true);
  }
}

let database: TestDatabase;
let service: TestService;
let biasTo: (text: string) => Promise<Record<string, number>>;
beforeAll(async () => {
  const tokenizer = fixtureTokenizer('decoder/llama-tied');
  biasTo = async (text) =>
    Object.fromEntries([...(await tokenizer.encode(text))].map((token) => [token, 100]));
  database = await createTestDatabase();
  service = await TestService.start(
    { databaseUrl: database.url, redisUrl: undefined },
    { models: [], toolModels },
  );
});
afterAll(async () => {
  await service?.close();
  await database?.drop();
});

describe.each(families)('tools of a model that writes them as %s', (model) => {
  /** A model with random weights would call again and again. */
  const one = { parallel_tool_calls: false };
  const loose = { model, tools, temperature: 1.5, top_p: 1, top_k: -1, max_tokens: 3_000 };

  it('are called where one is required, by every choice', async () => {
    const { choices } = await service.complete({ ...loose, ...one, tool_choice: 'required', n: 4, seed: 1 });
    for (const { message, finish_reason } of choices) {
      expect(finish_reason).toBe('tool_calls');
      expect(message.content).toBeNull();
      expectSound(message.tool_calls);
    }
  });

  it('are called by their name', async () => {
    const tool_choice = { type: 'function', function: { name: 'get_weather' } };
    const { choices } = await service.complete({ ...loose, tool_choice, n: 2, seed: 2 });
    for (const { message } of choices) {
      expectSound(message.tool_calls);
      expect(message.tool_calls!.map(({ function: called }) => called.name)).toEqual(['get_weather']);
    }
  });

  it('are called where the model begins a call by itself, with arguments that fit', async () => {
    const { choices } = await service.complete({ ...loose, ...one, logit_bias: begin, n: 4, seed: 3 });
    for (const { message, finish_reason } of choices) {
      expect(finish_reason).toBe('tool_calls');
      expect(message.content).toBeNull();
      expectSound(message.tool_calls);
    }
  });

  it('are called beside a form of the text', async () => {
    const schema = { type: 'object', properties: { rain: { type: 'boolean' } }, required: ['rain'] };
    const response_format = { type: 'json_schema', json_schema: { name: 'sky', schema, strict: true } };
    const fields = { ...loose, ...one, response_format, seed: 4 };
    const calling = await service.complete({ ...fields, logit_bias: begin });
    expectSound(calling.choices[0]!.message.tool_calls);
    const writing = await service.complete({ ...fields, logit_bias: { '0': -100 } });
    expect(writing.choices[0]!.message.tool_calls).toBeUndefined();
    expect(JSON.parse(writing.choices[0]!.message.content!)).toEqual({ rain: expect.any(Boolean) });
  });

  it('are left alone where the model writes text', async () => {
    const { choices } = await service.complete({ ...loose, logit_bias: await biasTo('a'), max_tokens: 8 });
    expect(choices[0]!.message).toEqual({ role: 'assistant', content: 'a'.repeat(8) });
  });

  it('are called several times in one reply, up to a limit, where the family can', async () => {
    const logit_bias = await biasTo(separators[model]);
    const fields = { ...loose, tools: [now], tool_choice: 'required', logit_bias };
    const { choices } = await service.complete(fields);
    expectSound(choices[0]!.message.tool_calls);
    expect(choices[0]!.message.tool_calls).toHaveLength(model === 'llama-single' ? 1 : maxCalls);
    expect(choices[0]!.finish_reason).toBe('tool_calls');
    const single = await service.complete({ ...fields, ...one });
    expect(single.choices[0]!.message.tool_calls).toHaveLength(1);
  });

  it('stream the calls of the whole reply', async () => {
    const fields = { ...loose, tool_choice: 'required', seed: 5 };
    const { choices } = await service.complete(fields);
    const calls: { name: string; arguments: string }[] = [];
    let reason: string | null = null;
    for await (const data of events(await service.chat({ ...fields, stream: true }))) {
      if (data === '[DONE]') continue;
      const [choice] = chatChunkSchema.parse(JSON.parse(data)).choices as [ChatChunk['choices'][number]];
      reason = choice.finish_reason ?? reason;
      expect(choice.delta.content ?? '').toBe('');
      for (const { index, id, function: part } of choice.delta.tool_calls ?? []) {
        if (id === undefined) calls[index]!.arguments += part.arguments;
        else calls[index] = { name: part.name!, arguments: part.arguments! };
      }
    }
    expect(calls).toEqual(choices[0]!.message.tool_calls!.map(({ function: called }) => called));
    expect(reason).toBe(choices[0]!.finish_reason);
  });

  it('that are cut off by max_tokens end in length', async () => {
    // Too few for the shortest call with its arguments, whatever is drawn.
    const tool_choice = { type: 'function', function: { name: 'get_weather' } };
    const { choices } = await service.complete({ ...loose, tool_choice, max_tokens: 8 });
    expect(choices[0]!.finish_reason).toBe('length');
    expect(choices[0]!.message.content ?? '').toBe('');
  });

  it('go back to the model with their results', async () => {
    const question = { role: 'user', content: 'What about Oslo?' };
    const first = await service.complete({
      ...loose,
      messages: [question],
      tool_choice: 'required',
      seed: 6,
      parallel_tool_calls: false,
    });
    const { message } = first.choices[0]!;
    const result = { role: 'tool', tool_call_id: message.tool_calls![0]!.id, content: '18 degrees' };
    const told = { ...loose, tool_choice: 'none', max_tokens: 4 };
    const alone = await service.complete({ ...told, messages: [question] });
    const second = await service.complete({ ...told, messages: [question, message, result] });
    expect(second.usage.prompt_tokens).toBeGreaterThan(alone.usage.prompt_tokens + 18);
    expect(second.choices[0]!.message.tool_calls).toBeUndefined();
  });
});

it.each(['llama-single', 'llama-several'])(
  'a reply of %s that begins with a brace is a call',
  async (model) => {
    const logit_bias = await biasTo('{');
    const { choices } = await service.complete({
      model,
      tools,
      temperature: 0,
      logit_bias,
      max_tokens: 3_000,
    });
    expect(choices[0]!.finish_reason).toBe('tool_calls');
    expectSound(choices[0]!.message.tool_calls);
  },
);

it('a template that refuses several calls in a message refuses them by its own words', async () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'now', arguments: '{}' } });
  const messages = [
    { role: 'user', content: 'When?' },
    { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
    { role: 'tool', tool_call_id: 'a', content: 'now' },
    { role: 'tool', tool_call_id: 'b', content: 'now' },
  ];
  const response = await service.chat({ model: 'llama-single', tools, messages });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    message: 'messages: This model only supports single tool-calls at once!',
    error: { param: 'messages' },
  });
});
