import OpenAI from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chatChunkSchema } from '../../src/contract/chat.js';
import { modelListSchema } from '../../src/contract/models.js';
import { rerankResponseSchema } from '../../src/contract/rerank.js';
import { openDatabase } from '../../src/platform/database/database.js';
import { createLogger } from '../../src/platform/logger.js';
import crossEncoder from '../fixtures/encoder/bert-cross-encoder/expected.json' with { type: 'json' };
import { describeBackplanes } from '../support/backplanes.js';
import { errorBody } from '../support/error-body.js';
import { chatModel, collect, events, rerankModel, TestService } from './test-service.js';

describeBackplanes('the service', (kit) => {
  let service: TestService;
  beforeAll(async () => {
    service = await TestService.start(kit.settings);
  });
  afterAll(() => service?.close());

  it('answers a chat request whole', async () => {
    const reply = await service.complete({ max_tokens: 16 });
    expect(reply.choices[0]!.message.content).not.toBe('');
    expect(reply.usage.completion_tokens).toBe(16);
    expect(reply.choices[0]!.finish_reason).toBe('length');
  });

  it('streams the same text that it answers whole', async () => {
    const whole = await service.complete({ max_tokens: 40 });
    const response = await service.chat({ max_tokens: 40, stream: true });
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const { text, last } = await collect(response);
    expect(last).toBe('[DONE]');
    expect(text).toBe(whole.choices[0]!.message.content);
  });

  it('streams chunks of the contract, with usage before the end when asked', async () => {
    const response = await service.chat({
      max_tokens: 8,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const data of events(response)) {
      if (data !== '[DONE]') chunks.push(chatChunkSchema.parse(JSON.parse(data)));
    }
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(chunks[0]!.choices[0]!.delta.role).toBe('assistant');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 8 } });
  });

  it('gives the same text for the same seed', async () => {
    const fields = { max_tokens: 30, temperature: 1.2, seed: 42 };
    const texts = await Promise.all(
      [1, 2, 3].map(async () => (await service.complete(fields)).choices[0]!.message.content),
    );
    expect(new Set(texts).size).toBe(1);
  });

  it('ranks documents by the reference scores', async () => {
    const { query, documents, relevance_scores: reference } = crossEncoder;
    const response = await service.post('/v1/rerank', { model: rerankModel, query, documents });
    expect(response.status).toBe(200);
    const { results } = rerankResponseSchema.parse(await response.json());
    for (const { index, relevance_score } of results) {
      expect(relevance_score).toBeCloseTo(reference[index]!, 3);
    }
    const scores = results.map((result) => result.relevance_score);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
  });

  it('lists its models', async () => {
    const response = await fetch(`${service.url}/v1/models`, {
      headers: { authorization: `Bearer ${service.key}` },
    });
    const { data } = modelListSchema.parse(await response.json());
    expect(data.map(({ id }) => id)).toEqual([chatModel, rerankModel]);
  });

  it.each([
    [
      'a wrong key',
      401,
      20001,
      (url: string) => fetch(`${url}/v1/models`, { headers: { authorization: 'Bearer sk-no' } }),
    ],
    ['no key', 401, 20001, (url: string) => fetch(`${url}/v1/chat/completions`, { method: 'POST' })],
    ['an unknown route', 404, 20404, (url: string) => fetch(`${url}/v2/nothing`)],
  ])('answers %s with %i', async (_, status, code, request) => {
    const response = await request(service.url);
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual(errorBody(code, expect.any(String)));
  });

  it.each([
    ['an unknown model', { model: 'no-such-model', messages: [{ role: 'user', content: 'x' }] }, 400, 20012],
    ['broken JSON', '{"model": ', 400, 20015],
    ['a wrong field', { model: chatModel, messages: [{ role: 'user', content: 'x' }], top_p: 2 }, 400, 20015],
    [
      'a prompt beyond the context',
      { model: chatModel, messages: [{ role: 'user', content: 'word '.repeat(2_000) }] },
      400,
      20015,
    ],
    [
      'a prompt of many megabytes',
      { model: chatModel, messages: [{ role: 'user', content: 'word '.repeat(3_000_000) }] },
      400,
      20015,
    ],
    ['a body beyond the limit', `"${'x'.repeat(17 * 1024 * 1024)}"`, 413, 20042],
  ])('answers %s with its error', async (_, body, status, code) => {
    const response = await service.post('/v1/chat/completions', body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ code, data: null });
  });

  it('serves 64 streams at once, each with the text it has alone', async () => {
    const prompts = Array.from({ length: 64 }, (_, index) => `question number ${index % 8}`);
    const ask = async (content: string) =>
      collect(await service.chat({ messages: [{ role: 'user', content }], max_tokens: 24, stream: true }));
    const alone = new Map<string, string>();
    for (const prompt of new Set(prompts)) alone.set(prompt, (await ask(prompt)).text);
    const replies = await Promise.all(prompts.map(ask));
    for (const [index, { text, last }] of replies.entries()) {
      expect(last).toBe('[DONE]');
      expect(text).toBe(alone.get(prompts[index]!));
    }
  });

  it('answers the official OpenAI client, whole and streamed', async () => {
    const client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0 });
    const request = {
      model: chatModel,
      messages: [{ role: 'user' as const, content: 'good morning' }],
      temperature: 0,
      max_tokens: 12,
    };
    const whole = await client.chat.completions.create(request);
    let text = '';
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe(whole.choices[0]!.message.content);
    await expect(client.chat.completions.create({ ...request, model: 'none' })).rejects.toMatchObject({
      status: 400,
    });
  });

  it('records what each request used', async () => {
    const reply = await service.complete({ max_tokens: 5, user: 'someone' });
    const logger = createLogger({ level: 'silent', name: 'test' });
    const database = openDatabase(kit.settings.databaseUrl, { logger });
    try {
      await expect
        .poll(() => database.client.usageRecord.findUnique({ where: { id: reply.id } }))
        .toMatchObject({
          model: chatModel,
          operation: 'chat',
          endUser: 'someone',
          promptTokens: reply.usage.prompt_tokens,
          completionTokens: 5,
          finishReason: 'length',
          status: 200,
        });
    } finally {
      await database.close();
    }
  });
});
