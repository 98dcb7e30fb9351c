import {
  AIMessage,
  type AIMessageChunk,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { wideChatModel as chatModel } from '../end-to-end/test-service.js';
import { type ClientService, startClientService } from './client-service.js';

let service: ClientService;
beforeAll(async () => {
  service = await startClientService({ models: [chatModel] });
});
afterAll(() => service?.close());

const connect = (fields: ChatOpenAIFields = {}) =>
  new ChatOpenAI({
    model: chatModel,
    apiKey: service.key,
    configuration: { baseURL: `${service.url}/v1` },
    temperature: 0,
    maxRetries: 0,
    ...fields,
  });

describe('LangChain', () => {
  it('invokes the model', async () => {
    const reply = await connect({ maxTokens: 12 }).invoke([
      new SystemMessage('be brief'),
      new HumanMessage('good morning'),
    ]);
    expect(reply).toBeInstanceOf(AIMessage);
    expect(reply.text).not.toBe('');
    expect(reply.usage_metadata).toMatchObject({ output_tokens: 12 });
    expect(reply.response_metadata).toMatchObject({ finish_reason: 'length' });
  });

  it('streams the same text, and its usage', async () => {
    const model = connect({ maxTokens: 24 });
    const whole = await model.invoke('good morning');
    let joined: AIMessageChunk | undefined;
    for await (const chunk of await model.stream('good morning')) joined = joined?.concat(chunk) ?? chunk;
    expect(joined!.text).toBe(whole.text);
    expect(joined!.usage_metadata).toMatchObject({
      input_tokens: whole.usage_metadata!.input_tokens,
      output_tokens: 24,
    });
  });

  it('answers many at once', async () => {
    const replies = await connect({ maxTokens: 8 }).batch(['one', 'two', 'one']);
    expect(replies).toHaveLength(3);
    expect(replies[2]!.text).toBe(replies[0]!.text);
  });

  it('sees the status of errors', async () => {
    await expect(connect({ apiKey: 'sk-wrong' }).invoke('hello')).rejects.toMatchObject({ status: 401 });
  });
});

describe('LangChain, given a schema', () => {
  const schema = z.strictObject({
    city: z.enum(['Berlin', 'Paris', 'Wien']),
    days: z.array(z.int().min(1).max(7)).min(1).max(3),
  });

  it.each(['jsonSchema', 'functionCalling'] as const)('gets an object by way of %s', async (method) => {
    const object = await connect()
      .withStructuredOutput(schema, { method, name: 'plan' })
      .invoke('plan a trip');
    expect(schema.parse(object)).toEqual(object);
  });

  it('gets JSON of any kind', async () => {
    const reply = await connect({ maxTokens: 200 })
      .withConfig({ response_format: { type: 'json_object' } })
      .invoke('plan a trip');
    if (reply.response_metadata['finish_reason'] === 'stop')
      expect(JSON.parse(reply.text)).toBeTypeOf('object');
    else expect(reply.text.trimStart()).toMatch(/^\{/);
  });
});

describe('LangChain, given tools', () => {
  const schema = z.strictObject({ city: z.enum(['Berlin', 'Paris', 'Wien']), days: z.int().min(1).max(7) });
  const forecast = tool(async ({ city, days }) => `${city}: clear for ${days} days`, {
    name: 'forecast',
    description: 'The weather to come',
    schema,
  });

  it('calls one, and goes on with its result', async () => {
    const question = new HumanMessage('what about tomorrow?');
    const asked = await connect()
      .bindTools([forecast], { tool_choice: 'forecast', parallel_tool_calls: false })
      .invoke([question]);
    const [call, ...others] = asked.tool_calls!;
    expect(others).toEqual([]);
    expect(asked.invalid_tool_calls).toEqual([]);
    expect(call!.name).toBe('forecast');
    expect(schema.parse(call!.args)).toEqual(call!.args);

    const result = await forecast.invoke(call!);
    expect(result).toBeInstanceOf(ToolMessage);
    const answer = await connect({ maxTokens: 12 })
      .bindTools([forecast], { tool_choice: 'none' })
      .invoke([question, asked, result]);
    expect(answer.tool_calls).toEqual([]);
    expect(answer.usage_metadata!.output_tokens).toBe(12);
  });

  it('streams a call', async () => {
    let joined: AIMessageChunk | undefined;
    const model = connect().bindTools([forecast], { tool_choice: 'required', parallel_tool_calls: false });
    for await (const chunk of await model.stream('and the day after?'))
      joined = joined?.concat(chunk) ?? chunk;
    expect(joined!.invalid_tool_calls).toEqual([]);
    expect(joined!.tool_calls!.length).toBeGreaterThan(0);
    for (const { name, args } of joined!.tool_calls!) {
      expect(name).toBe('forecast');
      expect(schema.parse(args)).toEqual(args);
    }
  });
});
