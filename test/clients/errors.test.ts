import { createCohere } from '@ai-sdk/cohere';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { APICallError, generateText, rerank, streamText } from 'ai';
import { CohereClientV2, CohereError } from 'cohere-ai';
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen } from '../api/support/sockets.js';
import { secret, startTestService, type TestService } from '../api/support/test-app.js';
import { deferred } from '../support/deferred.js';

const tooHot = 'temperature: must be at most 2';
const noQuery = 'query: must not be empty';
const noMemory = 'No memory is left.';

let service: TestService;
let url: string;
beforeEach(async () => {
  service = await startTestService();
  url = `http://127.0.0.1:${await listen(service.app)}`;
});
afterEach(() => service.close());

/** A worker that begins to answer, and fails once `read` resolves. */
async function failAfter(read: Promise<void>): Promise<void> {
  const run = await service.chat.next();
  await run.start();
  await run.text('Good ');
  await read;
  await run.fail('overloaded', noMemory);
}

/** Reads a stream whose worker fails once its first text was read: the text, and what was thrown. */
async function readFailing(texts: () => AsyncIterable<string>) {
  const reading = deferred();
  const failing = failAfter(reading.promise);
  let text = '';
  let thrown: unknown;
  try {
    for await (const piece of texts()) {
      text += piece;
      if (text !== '') reading.resolve();
    }
  } catch (error) {
    thrown = error;
  }
  await failing;
  return { text, thrown };
}

const reasonOf = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  );

describe("OpenAI's client", () => {
  const question = { model: 'tiny-chat', messages: [{ role: 'user' as const, content: 'Hello' }] };
  const connect = (apiKey = secret) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

  it('says what was wrong with a request, and where', async () => {
    const error = await reasonOf(connect().chat.completions.create({ ...question, temperature: 9 }));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    const param = 'temperature';
    expect(error).toMatchObject({ message: `400 ${tooHot}`, type: 'invalid_request_error', param });
  });

  it('says that a key is wrong', async () => {
    const error = await reasonOf(connect('sk-wrong').chat.completions.create(question));
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(error).toMatchObject({
      message: '401 The API key is missing or wrong.',
      code: 'invalid_api_key',
    });
  });

  it('says why a stream broke off', async () => {
    const { text, thrown } = await readFailing(async function* () {
      const stream = await connect().chat.completions.create({ ...question, stream: true });
      for await (const { choices } of stream) yield choices[0]!.delta.content ?? '';
    });
    expect(text).toBe('Good ');
    expect(thrown).toBeInstanceOf(OpenAI.APIError);
    expect(thrown).toMatchObject({ message: noMemory, type: 'server_error' });
  });

  it('says so also by way of its stream helper', async () => {
    const { text, thrown } = await readFailing(async function* () {
      const stream = connect().chat.completions.stream(question);
      for await (const { choices } of stream) yield choices[0]!.delta.content ?? '';
    });
    expect(text).toBe('Good ');
    expect(thrown).toMatchObject({ message: noMemory });
  });
});

describe('the AI SDK', () => {
  const request = () => ({
    model: createOpenAICompatible({ name: 'headrace', baseURL: `${url}/v1`, apiKey: secret })('tiny-chat'),
    prompt: 'Hello',
    maxRetries: 0,
  });

  it('says what was wrong with a request', async () => {
    const error = await reasonOf(generateText({ ...request(), temperature: 9 }));
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 400, message: tooHot });
  });

  it('says why a stream broke off', async () => {
    const errors: unknown[] = [];
    const { text } = await readFailing(
      () => streamText({ ...request(), onError: ({ error }) => void errors.push(error) }).textStream,
    );
    expect(text).toBe('Good ');
    expect(errors).toEqual([expect.objectContaining({ message: noMemory })]);
  });

  it('says what was wrong with a rerank request', async () => {
    const model = createCohere({ apiKey: secret, baseURL: `${url}/v1` }).reranking('tiny-rerank');
    const error = await reasonOf(rerank({ model, query: '', documents: ['a'], maxRetries: 0 }));
    expect(error).toMatchObject({ statusCode: 400, message: noQuery });
  });
});

describe('LangChain', () => {
  const connect = (temperature = 0) =>
    new ChatOpenAI({
      model: 'tiny-chat',
      apiKey: secret,
      configuration: { baseURL: `${url}/v1` },
      temperature,
      maxRetries: 0,
    });

  it('says what was wrong with a request', async () => {
    const error = await reasonOf(connect(9).invoke('Hello'));
    expect(error).toMatchObject({ status: 400, message: `400 ${tooHot}`, param: 'temperature' });
  });

  it('says why a stream broke off', async () => {
    const { text, thrown } = await readFailing(async function* () {
      for await (const chunk of await connect().stream('Hello')) yield chunk.text;
    });
    expect(text).toBe('Good ');
    expect(thrown).toMatchObject({ message: noMemory });
  });
});

describe("Cohere's client", () => {
  it('says what was wrong with a request', async () => {
    const client = new CohereClientV2({ token: secret, environment: url, maxRetries: 0 });
    const error = await reasonOf(client.rerank({ model: 'tiny-rerank', query: '', documents: ['a'] }));
    expect(error).toBeInstanceOf(CohereError);
    expect(error).toMatchObject({ statusCode: 400, body: { code: 20015, message: noQuery } });
    expect((error as CohereError).message).toContain(noQuery);
  });
});
