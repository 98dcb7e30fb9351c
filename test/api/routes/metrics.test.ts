import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen, sendChat } from '../support/sockets.js';
import { chatRequest, startTestService, type TestService } from '../support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

async function scrape(): Promise<string> {
  const response = await service.app.inject({ url: '/metrics' });
  expect(response.headers['content-type']).toMatch(/^text\/plain/);
  return response.body;
}

describe('/metrics', () => {
  it('counts requests, tokens and times by operation and model', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.finish('stop', { promptTokens: 9, completionTokens: 2 });
    await answer;
    const text = await scrape();
    expect(text).toContain('headrace_requests_total{operation="chat",model="tiny-chat",status="200"} 1');
    expect(text).toContain('headrace_tokens_total{model="tiny-chat",kind="prompt"} 9');
    expect(text).toContain('headrace_tokens_total{model="tiny-chat",kind="completion"} 2');
    expect(text).toContain('headrace_first_token_seconds_count{operation="chat",model="tiny-chat"} 1');
    expect(text).toContain('headrace_request_seconds_count{operation="chat",model="tiny-chat"} 1');
  });

  it('has no label that a client can choose', async () => {
    await service.app.inject(chatRequest({ model: 'chosen-by-a-client' }));
    await service.app.inject({ url: '/chosen-by-a-client' });
    const text = await scrape();
    expect(text).toContain('headrace_requests_total{operation="chat",model="",status="400"} 1');
    expect(text).toContain('headrace_requests_total{operation="other",model="",status="404"} 1');
    expect(text).not.toContain('chosen-by-a-client');
  });

  it('shows how many jobs wait, and leaves out a queue that does not answer', async () => {
    const waiting = sendChat(await listen(service.app), { model: 'owner/seeing-chat' });
    while (service.backplane.queue('owner/seeing-chat').waiting.length === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    service.backplane.queue('tiny-rerank').depth = async () => {
      throw new Error('away');
    };
    const text = await scrape();
    expect(text).toContain('headrace_queue_depth{model="owner/seeing-chat"} 1');
    expect(text).toContain('headrace_requests_in_flight 1');
    expect(text).not.toContain('headrace_queue_depth{model="tiny-rerank"}');
    waiting.destroy();
    await service.database.entriesWritten();
    expect(await scrape()).toContain(
      'headrace_requests_total{operation="chat",model="owner/seeing-chat",status="499"} 1',
    );
  });
});
