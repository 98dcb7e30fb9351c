import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen } from './support/sockets.js';
import { secret, startTestService, type TestService } from './support/test-app.js';

let service: TestService;
let client: OpenAI;
beforeEach(async () => {
  service = await startTestService();
  const port = await listen(service.app);
  client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: secret, maxRetries: 0 });
});
afterEach(() => service.close());

const question = { model: 'tiny-chat', messages: [{ role: 'user' as const, content: 'Hello' }] };

describe("OpenAI's own client", () => {
  it('gets a reply in one piece', async () => {
    const answer = client.chat.completions.create(question);
    const run = await service.chat.next();
    await run.start();
    await run.text('Hello there');
    await run.finish();
    const reply = await answer;
    expect(reply.choices[0]!.message.content).toBe('Hello there');
    expect(reply.usage!.total_tokens).toBe(11);
    expect(reply._request_id).toMatch(/^[0-9a-f]{24}$/);
  });

  it('gets a stream', async () => {
    const streaming = client.chat.completions.create({
      ...question,
      stream: true,
      stream_options: { include_usage: true },
    });
    const run = await service.chat.next();
    await run.start();
    for (const text of ['Hel', 'lo ', 'thére']) await run.text(text);
    await run.finish();
    let text = '';
    let usage: OpenAI.CompletionUsage | null | undefined;
    const reasons = new Set<string | null>();
    for await (const chunk of await streaming) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (chunk.choices[0]) reasons.add(chunk.choices[0].finish_reason);
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe('Hello thére');
    expect([...reasons]).toEqual([null, 'stop']);
    expect(usage!.total_tokens).toBe(11);
  });

  it('stops the generation when it breaks off a stream', async () => {
    const streaming = client.chat.completions.create({ ...question, stream: true });
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    for await (const chunk of await streaming) {
      expect(chunk.choices[0]!.delta.content).toBe('a');
      break;
    }
    await run.cancelled;
    await run.cancel({});
  });

  it('sees errors as the classes it knows', async () => {
    await expect(client.chat.completions.create({ ...question, temperature: 9 })).rejects.toBeInstanceOf(
      OpenAI.BadRequestError,
    );
    const stranger = client.withOptions({ apiKey: 'sk-wrong' });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });

  it('lists models and finds one', async () => {
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toContain('tiny-chat');
    expect((await client.models.retrieve('owner/seeing-chat')).id).toBe('owner/seeing-chat');
  });
});
