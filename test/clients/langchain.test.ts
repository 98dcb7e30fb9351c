import { AIMessage, type AIMessageChunk, HumanMessage, SystemMessage } from '@langchain/core/messages';
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chatModel } from '../end-to-end/test-service.js';
import { type ClientService, startClientService } from './client-service.js';

let service: ClientService;
beforeAll(async () => {
  service = await startClientService();
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
