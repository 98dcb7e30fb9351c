import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/logger.js';
import { type StartedWorker, startWorker } from '../../src/worker/start-worker.js';
import { threadScript } from '../engine/support/thread-script.js';
import { type BackplaneKit, describeBackplanes } from '../support/backplanes.js';
import { chatModel, events, TestService, until } from './test-service.js';

const logger = createLogger({ level: 'silent', name: 'test' });
const long = { max_tokens: 480 };

describeBackplanes('a client that goes away', (kit: BackplaneKit) => {
  let service: TestService;
  let worker: StartedWorker | undefined;

  beforeEach(async () => {
    service = await TestService.start(kit.settings, {
      workers: [],
      environment: { HEADRACE_MAX_SEQUENCES: '1' },
    });
    await until(async () => (await fetch(`${service.url}/livez`)).ok);
  });
  afterEach(async () => {
    await worker?.close({ drainMs: 0 });
    worker = undefined;
    await service.close();
  });

  /** A worker in this process, so that its engine's counters can be read. */
  async function startHere(): Promise<StartedWorker> {
    worker = await startWorker({
      config: loadConfig(service.environment),
      modelId: chatModel,
      logger,
      signal: new AbortController().signal,
      engineScript: threadScript(),
    });
    return worker;
  }

  it.each([
    ['streaming', true],
    ['waiting for the whole reply', false],
  ])('frees its slot while %s', async (_, stream) => {
    const { engine } = await startHere();
    const controller = new AbortController();
    const reply = service.chat({ ...long, stream }, { signal: controller.signal });
    if (stream) await events(await reply).next();
    await until(async () => (await engine.counters()).decodeTokens > 0);
    controller.abort();
    await reply.catch(() => {});
    await until(async () => (await engine.counters()).running === 0);
    const { decodeTokens, kvBytesUsed, cancelled } = await engine.counters();
    expect(cancelled).toBe(1);
    expect(decodeTokens).toBeLessThan(long.max_tokens);
    expect(kvBytesUsed).toBe(0);
  });

  it('leaves the queue of the model when no worker has taken its request', async () => {
    const controller = new AbortController();
    const reply = service.chat(long, { signal: controller.signal });
    const backplane = await kit.open();
    const queue = backplane.queue(chatModel);
    await until(async () => (await queue.depth()) === 1);
    controller.abort();
    await expect(reply).rejects.toThrow('aborted');
    await until(async () => (await queue.depth()) === 0);
    const { engine } = await startHere();
    expect((await service.complete({ max_tokens: 3 })).usage.completion_tokens).toBe(3);
    expect((await engine.counters()).decodeTokens).toBe(3);
  });

  it('leaves the queue of the engine, and the request before it goes on', async () => {
    const { engine } = await startHere();
    const first = service.complete(long);
    await until(async () => (await engine.counters()).running === 1);
    const controller = new AbortController();
    const second = service.chat(long, { signal: controller.signal });
    await until(async () => (await engine.counters()).waiting === 1);
    controller.abort();
    await expect(second).rejects.toThrow('aborted');
    await until(async () => (await engine.counters()).waiting === 0);
    expect((await first).usage.completion_tokens).toBe(long.max_tokens);
    expect(await engine.counters()).toMatchObject({
      running: 0,
      cancelled: 1,
      decodeTokens: long.max_tokens,
    });
  });
});
