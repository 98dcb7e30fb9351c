import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chatModel } from '../end-to-end/test-service.js';
import { type ClientService, startClientService } from './client-service.js';

let service: ClientService;
let client: OpenAI;
beforeAll(async () => {
  service = await startClientService();
  client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0 });
});
afterAll(() => service?.close());

const question = {
  model: chatModel,
  messages: [{ role: 'user' as const, content: 'good morning' }],
  temperature: 0,
};

describe("OpenAI's client", () => {
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
