import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { canStopServer, type OwnServer, startOwnServer } from '../support/backplanes.js';
import { chatModel, collect, events, TestService, until } from './test-service.js';

/** Long enough to be caught in the middle of, most of all when there are as many as the engine has slots. */
const long = { max_tokens: 480 };
const slots = 32;

for (const kind of ['redis', 'postgres'] as const) {
  const impossible = kind === 'redis' && inject('redis').kind === 'none';
  describe.skipIf(impossible || !canStopServer(kind))(
    `a service on its own ${kind}`,
    { timeout: 90_000 },
    () => {
      let server: OwnServer;
      let service: TestService;
      beforeEach(async () => {
        server = await startOwnServer(kind);
        service = await TestService.start(server.settings, { apis: 2 });
      });
      afterEach(async () => {
        await service?.close();
        await server?.close();
      });

      it('ends a stream with an error when its worker is killed, and serves again with a new one', async () => {
        const response = await service.chat({ ...long, stream: true });
        const stream = events(response);
        await stream.next();
        await service.workers.get(chatModel)!.kill();
        service.startWorker(chatModel);
        let last = '';
        for await (const data of stream) last = data;
        expect(JSON.parse(last)).toMatchObject({ code: 50505, message: expect.any(String), data: null });
        await service.ready();
        expect((await service.complete({ max_tokens: 4 })).usage.completion_tokens).toBe(4);
      });

      it('answers whole requests that their first worker died with', async () => {
        const worker = service.workers.get(chatModel)!;
        const expected = await service.complete(long);
        const replies = Array.from({ length: slots }, () => service.complete(long));
        await until(async () => (await heldBy(service)) > 0);
        await worker.kill();
        service.startWorker(chatModel);
        for (const { choices } of await Promise.all(replies)) expect(choices).toEqual(expected.choices);
      });

      it('goes on with the other API process when one is killed, and drops what it had asked for', async () => {
        const streams = Array.from({ length: slots }, async () => {
          const response = await service.chat({ ...long, stream: true });
          return response.text();
        });
        const cut = Promise.allSettled(streams);
        await until(async () => (await heldBy(service)) > 0);
        await service.apis[0]!.process.kill();
        await cut;
        const other = await service.chat({ max_tokens: 8, stream: true }, { api: 1 });
        expect((await collect(other)).last).toBe('[DONE]');
        await until(async () => (await heldBy(service)) === 0);
        service.restartApi(0);
        await service.ready();
        expect((await service.complete({ max_tokens: 4 })).usage.completion_tokens).toBe(4);
      });

      it(`recovers when ${kind} was stopped and started again, and leaves no request hanging`, async () => {
        const running = Array.from({ length: slots }, async (_, index) => {
          const response = await service.chat({ ...long, stream: true }, { api: index % 2 });
          return response.text();
        });
        await until(async () => (await heldBy(service)) > 0);
        await server.stop();
        const during = await service.chat({ max_tokens: 4 });
        expect([503, 504]).toContain(during.status);
        await server.start();
        for (const text of await Promise.all(running)) expect(text).not.toBe('');
        await service.ready();
        expect((await service.complete({ max_tokens: 4 })).usage.completion_tokens).toBe(4);
      });
    },
  );
}

/** Requests that workers of the chat model hold, as the last API process has heard of them. */
async function heldBy(service: TestService): Promise<number> {
  const text = await (await fetch(`${service.apis.at(-1)!.url}/metrics`)).text();
  const samples = text
    .split('\n')
    .filter((line) => line.startsWith(`headrace_worker_held_requests{model="${chatModel}"`));
  if (samples.length === 0) throw new Error('No worker is known.');
  return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
