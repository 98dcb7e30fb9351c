import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WorkerPresence } from '../../../src/platform/presence.js';
import { engineCounters } from '../../worker/support/engine-counters.js';
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

  describe('of workers', () => {
    const engine = engineCounters({ kvBytesUsed: 4_096, decodeTokens: 30 });
    const worker = (fields: Partial<WorkerPresence>): WorkerPresence => ({
      role: 'worker',
      id: 'w1',
      leaving: false,
      model: 'tiny-chat',
      held: 2,
      running: 1,
      ...fields,
    });
    const there: WorkerPresence[] = [];
    beforeEach(async () => {
      there.length = 0;
      await service.close();
      service = await startTestService({
        presence: { workersOf: (model) => there.filter((one) => one.model === model) },
      });
    });

    it('shows what each engine holds, and what it has done', async () => {
      there.push(worker({ engine }), worker({ id: 'w2', model: 'tiny-rerank', engine: engineCounters() }));
      const text = await scrape();
      expect(text).toContain('headrace_worker_held_requests{model="tiny-chat",worker="w1"} 2');
      expect(text).toContain('# TYPE headrace_engine_kv_used_bytes gauge');
      expect(text).toContain('headrace_engine_kv_used_bytes{model="tiny-chat",worker="w1"} 4096');
      expect(text).toContain('headrace_engine_kv_used_bytes{model="tiny-rerank",worker="w2"} 1000');
      expect(text).toContain('# TYPE headrace_engine_decode_tokens_total counter');
      expect(text).toContain('headrace_engine_decode_tokens_total{model="tiny-chat",worker="w1"} 30');
    });

    it('shows totals as the worker said them, however often they are read', async () => {
      there.push(worker({ engine }));
      await scrape();
      expect(await scrape()).toContain(
        'headrace_engine_decode_tokens_total{model="tiny-chat",worker="w1"} 30',
      );
    });

    it('has nothing of an engine that has not counted yet', async () => {
      there.push(worker({}));
      const text = await scrape();
      expect(text).toContain('headrace_worker_held_requests{model="tiny-chat",worker="w1"} 2');
      expect(text).not.toMatch(/^headrace_engine_.*w1/m);
    });

    it('forgets a worker that has left', async () => {
      there.push(worker({ engine }));
      expect(await scrape()).toContain('worker="w1"');
      there.length = 0;
      expect(await scrape()).not.toContain('worker="w1"');
    });
  });
});
