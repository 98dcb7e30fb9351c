import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { wideChatModel as chatModel } from '../end-to-end/test-service.js';
import { type ClientService, startClientService } from './client-service.js';

let service: ClientService;
let client: OpenAI;
beforeAll(async () => {
  service = await startClientService({ models: [chatModel] });
  client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0 });
});
afterAll(() => service?.close());

const question = {
  model: chatModel,
  messages: [{ role: 'user' as const, content: 'good morning' }],
  temperature: 0,
};

describe("OpenAI's client", () => {
  it('gets several choices with their log-probabilities', async () => {
    const { choices, usage } = await client.chat.completions.create({
      ...question,
      temperature: 1,
      seed: 7,
      n: 3,
      max_completion_tokens: 6,
      logprobs: true,
      top_logprobs: 2,
    });
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    for (const { logprobs } of choices) {
      expect(logprobs!.content).toHaveLength(6);
      for (const { top_logprobs } of logprobs!.content!) expect(top_logprobs).toHaveLength(2);
    }
    expect(usage!.completion_tokens).toBe(18);
  });

  it('follows a stream by events', async () => {
    const whole = await client.chat.completions.create({ ...question, max_tokens: 20 });
    const stream = client.chat.completions.stream({
      ...question,
      max_tokens: 20,
      stream_options: { include_usage: true },
    });
    const deltas: string[] = [];
    stream.on('content', (delta) => deltas.push(delta));
    const { choices, usage } = await stream.finalChatCompletion();
    expect(choices[0]!.message.content).toBe(whole.choices[0]!.message.content);
    expect(deltas.join('')).toBe(choices[0]!.message.content);
    expect(choices[0]!.finish_reason).toBe('length');
    expect(usage).toEqual(whole.usage);
  });

  it('sees errors as the classes it knows', async () => {
    const { completions } = client.chat;
    await expect(completions.create({ ...question, top_p: 9 })).rejects.toBeInstanceOf(
      OpenAI.BadRequestError,
    );
    const stranger = client.withOptions({ apiKey: 'sk-wrong' });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });
});

describe("OpenAI's client, given a schema", () => {
  const plan = z.strictObject({
    city: z.enum(['Berlin', 'Paris', 'Wien']),
    stays: z
      .array(z.strictObject({ day: z.int().min(1).max(7), rain: z.boolean() }))
      .min(1)
      .max(2),
    note: z.nullable(z.literal('none')),
  });
  const request = { ...question, max_tokens: 300, response_format: zodResponseFormat(plan, 'plan') };

  it('parses a reply', async () => {
    const { choices } = await client.chat.completions.parse(request);
    expect(choices[0]!.finish_reason).toBe('stop');
    expect(plan.parse(choices[0]!.message.parsed)).toEqual(JSON.parse(choices[0]!.message.content!));
  });

  it('parses every choice', async () => {
    const { choices } = await client.chat.completions.parse({ ...request, n: 3, temperature: 1, seed: 1 });
    expect(choices).toHaveLength(3);
    for (const { message } of choices) expect(plan.parse(message.parsed)).toBeDefined();
  });

  it('parses a stream', async () => {
    const stream = client.chat.completions.stream(request);
    const [choice] = (await stream.finalChatCompletion()).choices;
    expect(plan.parse(choice!.message.parsed)).toEqual(JSON.parse(choice!.message.content!));
  });
});

describe("OpenAI's client, given tools", () => {
  const parameters = z.strictObject({
    city: z.enum(['Berlin', 'Paris', 'Wien']),
    days: z.int().min(1).max(7),
  });
  type Asked = z.infer<typeof parameters>;
  const forecast = (calls: Asked[]) =>
    zodFunction({
      name: 'forecast',
      description: 'The weather to come',
      parameters,
      function: (asked: Asked) => {
        calls.push(asked);
        return { sky: 'clear' };
      },
    });
  const request = { ...question, max_tokens: 200 };

  it('runs the one that is named', async () => {
    const calls: Asked[] = [];
    const runner = client.chat.completions.runTools({
      ...request,
      tools: [forecast(calls)],
      tool_choice: { type: 'function', function: { name: 'forecast' } },
    });
    await runner.done();
    expect(calls).toEqual([parameters.parse(calls[0])]);
    expect(await runner.finalFunctionToolCallResult()).toBe('{"sky":"clear"}');
  });

  it.each([false, true])('goes on with their results, streaming: %s', async (stream) => {
    const calls: Asked[] = [];
    const completions: OpenAI.ChatCompletion[] = [];
    const params = {
      ...request,
      tools: [forecast(calls)],
      tool_choice: 'required' as const,
      parallel_tool_calls: false,
    };
    const options = { maxChatCompletions: 2 };
    const heard = (completion: OpenAI.ChatCompletion) => completions.push(completion);
    const { completions: chat } = client.chat;
    const runner = stream
      ? chat.runTools({ ...params, stream: true }, options).on('chatCompletion', heard)
      : chat.runTools(params, options).on('chatCompletion', heard);
    await runner.done();
    expect(completions.map(({ choices }) => choices[0]!.finish_reason)).toEqual(['tool_calls', 'tool_calls']);
    expect(calls).toHaveLength(2);
    for (const call of calls) expect(parameters.parse(call)).toEqual(call);
    expect(runner.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
    ]);
  });

  it('calls none when told so', async () => {
    const { choices } = await client.chat.completions.create({
      ...request,
      max_tokens: 12,
      tools: [{ type: 'function', function: { name: 'now', parameters: { type: 'object' } } }],
      tool_choice: 'none',
    });
    expect(choices[0]!.message.tool_calls).toBeUndefined();
    expect(choices[0]!.finish_reason).toBe('length');
  });
});
