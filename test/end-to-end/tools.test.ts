import ajvModule from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ChatChunk, chatChunkSchema, type ToolCall } from '../../src/contract/chat.js';
import { describeBackplanes } from '../support/backplanes.js';
import { errorBody } from '../support/error-body.js';
import { events, TestService } from './test-service.js';

const parameters = {
  type: 'object',
  properties: { city: { enum: ['Oslo', 'São Paulo'] }, days: { type: 'integer', minimum: 1, maximum: 9 } },
  required: ['city', 'days'],
  additionalProperties: false,
};
const tools = [
  { type: 'function', function: { name: 'get_weather', description: 'The weather.', parameters } },
  { type: 'function', function: { name: 'now' } },
];
const ajv = new ajvModule.default({ strict: false });
const validators: Record<string, (value: unknown) => boolean> = {
  get_weather: ajv.compile(parameters),
  now: ajv.compile({ type: 'object', maxProperties: 0 }),
};
const loose = { tools, temperature: 1.5, top_p: 1, top_k: -1, max_tokens: 300 };

function expectSound(calls: readonly ToolCall[]) {
  for (const { id, function: called } of calls) {
    expect(id).toMatch(/^call_\w+$/);
    expect(validators[called.name]!(JSON.parse(called.arguments)), called.arguments).toBe(true);
  }
  expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length);
}

/** The calls that the deltas of one choice add up to, and its content. */
function gather(chunks: readonly ChatChunk[], choice: number) {
  const calls: ToolCall[] = [];
  let content = '';
  for (const { delta } of chunks.flatMap(({ choices }) => choices.filter(({ index }) => index === choice))) {
    content += delta.content ?? '';
    for (const { index, id, function: called } of delta.tool_calls ?? []) {
      if (id !== undefined) {
        expect(index, 'calls begin one after the other').toBe(calls.length);
        calls.push({ id, type: 'function', function: { name: called.name!, arguments: called.arguments! } });
      } else calls[index]!.function.arguments += called.arguments!;
    }
  }
  return { calls, content };
}

describeBackplanes('tools', (kit) => {
  let service: TestService;
  beforeAll(async () => {
    service = await TestService.start(kit.settings);
  });
  afterAll(() => service?.close());

  it('required: every choice calls, with arguments that fit', async () => {
    const reply = await service.complete({
      ...loose,
      tool_choice: 'required',
      parallel_tool_calls: false,
      n: 4,
      seed: 1,
    });
    for (const { message, finish_reason } of reply.choices) {
      expect(message.content).toBeNull();
      expect(finish_reason).toBe('tool_calls');
      expect(message.tool_calls!.length).toBeGreaterThan(0);
      expectSound(message.tool_calls!);
    }
  });

  it('a named function is the one that is called', async () => {
    const tool_choice = { type: 'function', function: { name: 'get_weather' } };
    const reply = await service.complete({ ...loose, tool_choice, n: 4, seed: 2 });
    const calls = reply.choices.flatMap(({ message }) => message.tool_calls!);
    expectSound(calls);
    expect(new Set(calls.map(({ function: called }) => called.name))).toEqual(new Set(['get_weather']));
  });

  it('parallel_tool_calls: false leaves one call', async () => {
    const fields = { ...loose, tool_choice: 'required', n: 8, seed: 3 };
    const one = await service.complete({ ...fields, parallel_tool_calls: false });
    expect(one.choices.map(({ message }) => message.tool_calls!.length)).toEqual(new Array(8).fill(1));
  });

  it('streams the calls of the whole reply: index, id and name first, then arguments in pieces', async () => {
    const fields = { ...loose, tool_choice: 'required', n: 2, seed: 4 };
    const whole = await service.complete(fields);
    const chunks: ChatChunk[] = [];
    for await (const data of events(await service.chat({ ...fields, stream: true }))) {
      if (data !== '[DONE]') chunks.push(chatChunkSchema.parse(JSON.parse(data)));
    }
    for (const { index, message, finish_reason } of whole.choices) {
      const { calls, content } = gather(chunks, index);
      expectSound(finish_reason === 'tool_calls' ? calls : calls.slice(0, -1));
      expect(calls.map(({ function: called }) => called)).toEqual(
        message.tool_calls!.map(({ function: called }) => called),
      );
      expect(content).toBe('');
    }
    const reasons = chunks.flatMap(({ choices }) =>
      choices.flatMap(({ finish_reason }) => finish_reason ?? []),
    );
    expect(reasons.sort()).toEqual(whole.choices.map(({ finish_reason }) => finish_reason).sort());
  });

  it('a call that max_tokens cuts off ends in length', async () => {
    const reply = await service.complete({ ...loose, tool_choice: 'required', max_tokens: 8, seed: 1 });
    expect(reply.choices[0]!.finish_reason).toBe('length');
  });

  it('none gives text', async () => {
    const reply = await service.complete({ tools, tool_choice: 'none', max_tokens: 12 });
    expect(reply.choices[0]!.message.tool_calls).toBeUndefined();
    expect(reply.choices[0]!.message.content).not.toBe('');
  });

  it('auto lets the model write text', async () => {
    const reply = await service.complete({ tools, max_tokens: 12 });
    expect(reply.choices[0]!.message.content).not.toBe('');
  });

  it('a call and its result go back to the model', async () => {
    const first = await service.complete({
      ...loose,
      tool_choice: 'required',
      parallel_tool_calls: false,
      seed: 6,
    });
    const { message } = first.choices[0]!;
    const [call] = message.tool_calls!;
    const question = { role: 'user', content: 'And now?' };
    const asked = await service.complete({ tools, messages: [question], max_tokens: 4 });
    const answered = await service.complete({
      tools,
      messages: [question, message, { role: 'tool', tool_call_id: call!.id, content: '18 degrees' }],
      max_tokens: 4,
    });
    expect(answered.usage.prompt_tokens).toBeGreaterThan(asked.usage.prompt_tokens + 18);
  });

  it.each([
    ['what is not supported', { type: 'object', if: {} }, '.if'],
    ['a form that is no object', { type: 'string' }, ''],
    [
      'a schema that is not there',
      { type: 'object', properties: { a: { $ref: '#/$defs/b' } } },
      '.properties.a.$ref',
    ],
    [
      'a pattern that is none',
      { type: 'object', properties: { a: { type: 'string', pattern: '(' } } },
      '.properties.a.pattern',
    ],
    ['what no value fits', { type: 'object', required: ['a'], properties: { a: false } }, ''],
  ])('refuses parameters with %s, by their place', async (_what, bad, place) => {
    const tool = { type: 'function', function: { name: 'bad', parameters: bad } };
    const response = await service.chat({ tools: [...tools, tool] });
    expect(response.status).toBe(400);
    const body = (await response.json()) as { message: string; error: { param: string } };
    expect(body).toEqual(errorBody(20015, expect.any(String)));
    expect(body.error.param).toBe(`tools[2].function.parameters${place}`);
    expect(body.message).toMatch(/^tools\[2\]\.function\.parameters[^ ]*: \S/);
  });
});
