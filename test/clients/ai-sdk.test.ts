import { createCohere } from '@ai-sdk/cohere';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, rerank, streamText } from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chatModel, rerankModel } from '../end-to-end/test-service.js';
import expected from '../fixtures/encoder/bert-cross-encoder/expected.json' with { type: 'json' };
import { type ClientService, startClientService } from './client-service.js';

let service: ClientService;
beforeAll(async () => {
  service = await startClientService();
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
