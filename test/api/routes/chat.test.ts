import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chatResponseSchema } from '../../../src/contract/chat.js';
import type { ChatJob } from '../../../src/contract/job.js';
import { errorBody } from '../../support/error-body.js';
import { FakeWorker, noneSpent } from '../support/fake-worker.js';
import {
  accountId,
  chatRequest,
  keyId,
  rerankRequest,
  startTestService,
  type TestService,
} from '../support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

/** The job that a request becomes; the request is answered and done with. */
async function jobOf(body: Record<string, unknown>) {
  const answer = service.app.inject(chatRequest(body));
  const run = await service.chat.next();
  await run.start();
  await run.finish();
  expect((await answer).statusCode).toBe(200);
  // As it is once it has been through a queue.
  return JSON.parse(JSON.stringify(run.job)) as ChatJob;
}

describe('a reply in one piece', () => {
  it('has the shape of the contract, the gathered text and the usage', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.text('Hel');
    await run.text('lo');
    await run.finish('stop', { promptTokens: 9, completionTokens: 2, cachedTokens: 3 });
    const response = await answer;
    expect(response.statusCode).toBe(200);
    expect(chatResponseSchema.parse(response.json())).toEqual({
      id: run.job.id,
      object: 'chat.completion',
      created: Math.floor(run.job.enqueuedAt / 1_000),
      model: 'tiny-chat',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 9,
        completion_tokens: 2,
        total_tokens: 11,
        prompt_tokens_details: { cached_tokens: 3 },
      },
    });
  });

  it('says why it ended', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.finish('length');
    expect((await answer).json().choices[0].finish_reason).toBe('length');
  });

  it('carries the queue and first-token times as headers', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.finish();
    const { headers } = await answer;
    expect(headers).toMatchObject({ 'x-headrace-queue-ms': '1.5', 'x-headrace-first-token-ms': '12.3' });
  });

  it('starts afresh when its job is run again', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.text('lost');
    await run.restart();
    await run.text('kept');
    await run.finish();
    expect((await answer).json().choices[0].message.content).toBe('kept');
  });

  it('is also given under the path without the version', async () => {
    const answer = service.app.inject({ ...chatRequest(), url: '/chat/completions' });
    const run = await service.chat.next();
    await run.start();
    await run.finish();
    expect((await answer).statusCode).toBe(200);
  });
});

describe('a job', () => {
  it('has an id of its own, whatever the caller named the request', async () => {
    const answers = [1, 2].map(() => service.app.inject(chatRequest({}, { 'x-request-id': 'mine' })));
    const runs = [await service.chat.next(), await service.chat.next()];
    for (const run of runs) {
      expect(run.job.id).toMatch(/^chatcmpl-[0-9a-f]{32}$/);
      await run.start();
      await run.finish();
    }
    expect(runs[0]!.job.id).not.toBe(runs[1]!.job.id);
    const responses = await Promise.all(answers);
    expect(responses.map(({ headers }) => headers['x-request-id'])).toEqual(['mine', 'mine']);
  });

  it('takes what the request leaves out from the catalogue, and the rest from nobody', async () => {
    const job = await jobOf({});
    expect(job).toEqual({
      kind: 'chat',
      caller: { accountId, keyId, endUser: null },
      id: job.id,
      replyTo: 'api-under-test',
      model: 'tiny-chat',
      enqueuedAt: job.enqueuedAt,
      deadlineAt: job.enqueuedAt + 60_000,
      priority: 'interactive',
      messages: [{ role: 'user', content: 'Hello' }],
      maxTokens: 64,
      stop: [],
      temperature: 0.5,
      n: 1,
      reservedTokens: expect.any(Number),
    });
  });

  it('carries every sampling field of the request', async () => {
    const fields = { temperature: 0, top_p: 0.9, top_k: -1, min_p: 0.1, seed: 7 };
    const job = await jobOf({ ...fields, frequency_penalty: 1, presence_penalty: -1, max_tokens: 3 });
    expect(job).toMatchObject({
      temperature: 0,
      topP: 0.9,
      topK: -1,
      minP: 0.1,
      seed: 7,
      frequencyPenalty: 1,
      presencePenalty: -1,
      maxTokens: 3,
    });
  });

  it.each([
    [{ stop: 'a' }, { stop: ['a'] }],
    [{ stop: ['a', 'b'] }, { stop: ['a', 'b'] }],
    [{ max_completion_tokens: 5 }, { maxTokens: 5 }],
    [{ max_tokens: 6, max_completion_tokens: 5 }, { maxTokens: 6 }],
    [
      { temperature: null, stop: null, seed: null },
      { temperature: 0.5, stop: [] },
    ],
  ])('of %j says %j', async (fields, expected) => {
    expect(await jobOf(fields)).toMatchObject(expected);
  });
});

describe('fields that speak of each other', () => {
  const toolOf = (name: string) => ({ type: 'function', function: { name } });

  it.each([
    ['top_logprobs: needs logprobs to be true', { top_logprobs: 2 }],
    ['tool_choice: needs tools', { tool_choice: 'required' }],
    ['tool_choice: needs tools', { tool_choice: 'required', tools: [] }],
    [
      'tool_choice.function.name: is not the name of a tool',
      { tool_choice: toolOf('a'), tools: [toolOf('b')] },
    ],
    [
      'tools[2].function.name: is the name of tools[0] already',
      { tools: [toolOf('a'), toolOf('b'), toolOf('a')] },
    ],
  ])('are refused with "%s"', async (message, fields) => {
    const response = await service.app.inject(chatRequest(fields));
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(errorBody(20015, message));
  });

  it('reach the worker', async () => {
    const tools = [toolOf('a')];
    const responseFormat = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } };
    expect(
      await jobOf({
        tools,
        tool_choice: toolOf('a'),
        parallel_tool_calls: false,
        response_format: responseFormat,
        n: 3,
        logprobs: true,
        top_logprobs: 2,
        logit_bias: { 5: 1 },
      }),
    ).toMatchObject({
      tools,
      toolChoice: toolOf('a'),
      parallelToolCalls: false,
      responseFormat,
      n: 3,
      topLogprobs: 2,
      logitBias: { 5: 1 },
    });
  });

  it('are left out of the job with values that ask for nothing', async () => {
    const job = await jobOf({
      tools: [],
      tool_choice: 'auto',
      response_format: { type: 'text' },
      logprobs: false,
      top_logprobs: 0,
    });
    expect(job).not.toHaveProperty('tools');
    expect(job).not.toHaveProperty('toolChoice');
    expect(job).not.toHaveProperty('responseFormat');
    expect(job).not.toHaveProperty('topLogprobs');
  });
});

describe('a reply with calls of tools', () => {
  it('has no content, and each call whole', async () => {
    const answer = service.app.inject(
      chatRequest({ tools: [{ type: 'function', function: { name: 'a' } }] }),
    );
    const run = await service.chat.next();
    await run.start();
    const call = {
      index: 0,
      id: 'call_1',
      type: 'function' as const,
      function: { name: 'a', arguments: '' },
    };
    await run.send({ type: 'delta', choice: 0, text: '', tokens: 3, toolCalls: [call] });
    const more = (index: number, text: string) => ({ index, function: { arguments: text } });
    await run.send({
      type: 'delta',
      choice: 0,
      text: '',
      tokens: 1,
      toolCalls: [more(0, '{"b"'), more(0, ':1}')],
    });
    const second = { ...call, index: 1, id: 'call_2' };
    await run.send({ type: 'delta', choice: 0, text: '', tokens: 1, toolCalls: [second, more(1, '{}')] });
    await run.send(
      { type: 'finish', choice: 0, reason: 'tool_calls' },
      { type: 'done', spent: noneSpent, timings: { queueMs: 1, firstTokenMs: 1, totalMs: 2 } },
    );
    expect((await answer).json().choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'call_1', type: 'function', function: { name: 'a', arguments: '{"b":1}' } },
            { id: 'call_2', type: 'function', function: { name: 'a', arguments: '{}' } },
          ],
        },
        finish_reason: 'tool_calls',
      },
    ]);
  });
});

describe('a request that cannot be answered', () => {
  const image = { type: 'image_url', image_url: { url: 'http://x' } };

  it.each([
    [
      'names an unknown model',
      { model: 'nobody' },
      20012,
      'Model does not exist. Please check it carefully.',
    ],
    [
      'names a reranker',
      { model: 'tiny-rerank' },
      20015,
      'model: must be a chat model, and this is a rerank model',
    ],
    [
      'sends an image to a model without eyes',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'user', content: [{ type: 'text', text: 'b' }, image] },
        ],
      },
      20015,
      'messages[1].content[1]: this model does not take images',
    ],
    ['has a wrong field', { temperature: 3 }, 20015, 'temperature: must be at most 2'],
  ])('and %s is 400', async (_what, fields, code, message) => {
    const response = await service.app.inject(chatRequest(fields));
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(errorBody(code, message));
  });

  it('because its prompt does not fit is 400, streamed or not', async () => {
    for (const stream of [false, true]) {
      const answer = service.app.inject(chatRequest({ stream }));
      const run = await service.chat.next();
      await run.start();
      await run.fail('invalidParameter', 'messages: the prompt has 9,000 tokens and the model takes 512');
      const response = await answer;
      expect(response.statusCode).toBe(400);
      expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(response.json().message).toMatch(/^messages: the prompt/);
    }
  });

  it.each([
    ['chat', () => chatRequest()],
    ['chat', () => chatRequest({ stream: true })],
    ['rerank', () => rerankRequest()],
  ] as const)('because its queue fails at once is over at once (%s %#)', async (operation, asked) => {
    for (const model of ['tiny-chat', 'tiny-rerank']) {
      service.backplane.queue(model).add = () => {
        throw new Error('secret detail');
      };
    }
    const response = await service.app.inject(asked());
    expect(response.statusCode).toBe(500);
    expect(response.json()).toEqual(errorBody(50500, 'Unknown error.'));
    const [entry] = await service.database.entriesWritten();
    expect(entry).toMatchObject({ operation, finishReason: 'internal', status: 500, promptTokens: 0 });
  });

  it('because frames were lost is 500 and tells nothing of that', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    run.loseFrame();
    await run.text('b');
    const response = await answer;
    expect(response.statusCode).toBe(500);
    expect(response.json()).toEqual(errorBody(50500, 'Unknown error.'));
    await run.cancel({});
  });
});

it('an image reaches a model that can see', async () => {
  const content = [{ type: 'image_url', image_url: { url: 'data:,' } }];
  const answer = service.app.inject(
    chatRequest({ model: 'owner/seeing-chat', messages: [{ role: 'user', content }] }),
  );
  const worker = await FakeWorker.start(service.backplane, 'owner/seeing-chat');
  const run = await worker.next();
  await run.start();
  await run.finish();
  expect((await answer).statusCode).toBe(200);
});
