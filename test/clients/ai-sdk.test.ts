import { createCohere } from '@ai-sdk/cohere';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import {
  APICallError,
  generateObject,
  generateText,
  rerank,
  stepCountIs,
  streamObject,
  streamText,
  tool,
} from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { wideChatModel as chatModel, rerankModel } from '../end-to-end/test-service.js';
import expected from '../fixtures/encoder/bert-cross-encoder/expected.json' with { type: 'json' };
import { type ClientService, startClientService } from './client-service.js';

let service: ClientService;
beforeAll(async () => {
  service = await startClientService({ models: [chatModel, rerankModel] });
});
afterAll(() => service?.close());

const connect = (apiKey: string) =>
  createOpenAICompatible({
    name: 'headrace',
    baseURL: `${service.url}/v1`,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
const request = () => ({
  model: connect(service.key)(chatModel),
  prompt: 'good morning',
  temperature: 0,
  maxRetries: 0,
});

describe('the AI SDK', () => {
  it('generates text', async () => {
    const { text, finishReason, usage, response } = await generateText({ ...request(), maxOutputTokens: 12 });
    expect(text).not.toBe('');
    expect(finishReason).toBe('length');
    expect(usage).toMatchObject({ outputTokens: 12, totalTokens: usage.inputTokens! + 12 });
    expect(response.modelId).toBe(chatModel);
  });

  it('streams the same text, and its usage', async () => {
    const whole = await generateText({ ...request(), maxOutputTokens: 24 });
    const stream = streamText({ ...request(), maxOutputTokens: 24 });
    let text = '';
    for await (const part of stream.textStream) text += part;
    expect(text).toBe(whole.text);
    expect(await stream.finishReason).toBe('length');
    expect(await stream.usage).toMatchObject({ outputTokens: 24, inputTokens: whole.usage.inputTokens });
  });

  it('ends at a stop sequence', async () => {
    const { text } = await generateText({ ...request(), maxOutputTokens: 24 });
    const stop = text.slice(8, 11);
    const { text: stopped, finishReason } = await generateText({
      ...request(),
      maxOutputTokens: 24,
      stopSequences: [stop],
    });
    expect(stopped).toBe(text.slice(0, text.indexOf(stop)));
    expect(finishReason).toBe('stop');
  });

  it('sees the status and the body of errors', async () => {
    const model = connect('sk-wrong')(chatModel);
    const error = await generateText({ ...request(), model }).catch((reason: unknown) => reason);
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 401, responseBody: expect.stringContaining('20001') });
  });

  it('breaks off a stream', async () => {
    const aborter = new AbortController();
    const stream = streamText({ ...request(), maxOutputTokens: 400, abortSignal: aborter.signal });
    const types: string[] = [];
    for await (const { type } of stream.fullStream) {
      types.push(type);
      if (type === 'text-delta') aborter.abort();
    }
    expect(types.at(-1)).toBe('abort');
  });

  it('reranks', async () => {
    const { query, documents, relevance_scores: scores } = expected;
    const cohere = createCohere({ baseURL: `${service.url}/v1`, apiKey: service.key });
    const { ranking } = await rerank({ model: cohere.reranking(rerankModel), query, documents, topN: 3 });
    const best = [...documents.keys()].sort((a, b) => scores[b]! - scores[a]!).slice(0, 3);
    expect(ranking.map(({ originalIndex }) => originalIndex)).toEqual(best);
    for (const { originalIndex, score, document } of ranking) {
      expect(score).toBeCloseTo(scores[originalIndex]!, 3);
      expect(document).toBe(documents[originalIndex]);
    }
  });
});

describe('the AI SDK, given a schema', () => {
  const schema = z.strictObject({
    city: z.enum(['Berlin', 'Paris', 'Wien']),
    days: z.array(z.int().min(1).max(7)).min(1).max(3),
    rain: z.boolean(),
  });

  it('generates an object', async () => {
    const { object } = await generateObject({ ...request(), schema });
    expect(schema.parse(object)).toEqual(object);
  });

  it('streams an object', async () => {
    const { partialObjectStream, object } = streamObject({ ...request(), schema });
    let last: unknown;
    for await (const partial of partialObjectStream) last = partial;
    expect(schema.parse(await object)).toEqual(last);
  });
});

describe('the AI SDK, given tools', () => {
  const inputSchema = z.strictObject({
    city: z.enum(['Berlin', 'Paris', 'Wien']),
    days: z.int().min(1).max(7),
  });
  const providerOptions = { headrace: { parallel_tool_calls: false } };
  const calls: z.infer<typeof inputSchema>[] = [];
  const tools = {
    forecast: tool({
      description: 'The weather to come',
      inputSchema,
      execute: async (input) => {
        calls.push(input);
        return { sky: 'clear' };
      },
    }),
    now: tool({ description: 'The time', inputSchema: z.strictObject({}), execute: async () => 'noon' }),
  };

  it('calls the one that is named, and goes on with its result', async () => {
    calls.length = 0;
    const { steps, finishReason } = await generateText({
      ...request(),
      tools,
      providerOptions,
      toolChoice: { type: 'tool', toolName: 'forecast' },
      stopWhen: stepCountIs(2),
    });
    expect(steps).toHaveLength(2);
    expect(finishReason).toBe('tool-calls');
    for (const { toolCalls, toolResults } of steps) {
      expect(toolCalls.map(({ toolName }) => toolName)).toEqual(['forecast']);
      expect(toolResults.map(({ output }) => output)).toEqual([{ sky: 'clear' }]);
    }
    expect(calls).toHaveLength(2);
    for (const call of calls) expect(inputSchema.parse(call)).toEqual(call);
  });

  it('streams a call of any where one is required', async () => {
    const stream = streamText({ ...request(), tools, providerOptions, toolChoice: 'required' });
    const types = new Set<string>();
    for await (const { type } of stream.fullStream) types.add(type);
    for (const type of ['tool-input-start', 'tool-input-delta', 'tool-call', 'tool-result']) {
      expect(types).toContain(type);
    }
    expect(await stream.finishReason).toBe('tool-calls');
    for (const { toolName, input } of await stream.toolCalls) {
      expect(tools[toolName as keyof typeof tools].inputSchema).toBeDefined();
      if (toolName === 'forecast') expect(inputSchema.parse(input)).toEqual(input);
      else expect(input).toEqual({});
    }
  });
});
