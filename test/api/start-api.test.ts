import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../src/api/start-api.js';
import { jobSchema } from '../../src/contract/job.js';
import { replyChannel } from '../../src/contract/names.js';
import { loadConfig } from '../../src/platform/config.js';
import { openDatabase } from '../../src/platform/database/database.js';
import { createKey } from '../../src/platform/keys.js';
import { describeBackplanes } from '../support/backplanes.js';
import { catalogue, rerankRequest } from './support/test-app.js';

const logger = pino({ level: 'silent' });

describeBackplanes('an API process', (kit) => {
  let api: RunningApi | undefined;
  let secret: string;
  beforeEach(async () => {
    const database = openDatabase(kit.settings.databaseUrl, { logger });
    ({ secret } = await createKey({ database, accountName: 'test', keyName: 'test' }));
    await database.close();
  });
  afterEach(async () => {
    await api?.close();
    api = undefined;
  });

  const start = async (port = 0) => {
    const config = { ...loadConfig({}), ...kit.settings, port };
    api = await startApi({
      config,
      databaseUrl: kit.settings.databaseUrl,
      catalogue,
      logger,
      timing: { drainMs: 0 },
    });
    return api;
  };

  const send = ({ port }: RunningApi) =>
    fetch(`http://127.0.0.1:${port}/v1/rerank`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(rerankRequest().payload),
    });

  it('carries a request through the queue and its frames back, and writes what it cost', async () => {
    const running = await start();
    const backplane = await kit.open();
    const consumer = await backplane.consume(
      'tiny-rerank',
      async ({ payload }) => {
        const { id, replyTo } = jobSchema.parse(payload);
        expect(replyTo).toBe(running.id);
        const timings = { queueMs: 1, firstTokenMs: 2, totalMs: 3 };
        const spent = { promptTokens: 30, completionTokens: 0, cachedTokens: 0 };
        const frames = [
          { type: 'started', id, attempt: 1, sequence: 0, workerId: 'w', queueMs: 1 },
          { type: 'ranked', id, attempt: 1, sequence: 1, scores: [0.1, 0.9, 0.5], spent, timings },
        ];
        await backplane.channel.publish(replyChannel(replyTo), JSON.stringify({ frames }));
      },
      { concurrency: 1 },
    );
    const response = await send(running);
    expect(response.status).toBe(200);
    const body = (await response.json()) as { id: string; results: { index: number }[] };
    expect(body.results.map(({ index }) => index)).toEqual([1, 2, 0]);
    await consumer.close({ drainMs: 0 });
    await running.close();
    const database = openDatabase(kit.settings.databaseUrl, { logger });
    const record = await database.client.usageRecord.findUniqueOrThrow({ where: { id: body.id } });
    await database.close();
    expect(record).toMatchObject({
      model: 'tiny-rerank',
      operation: 'rerank',
      promptTokens: 30,
      status: 200,
    });
  });

  it('takes a request out of the queue when it stops', async () => {
    const running = await start();
    const answer = send(running);
    const backplane = await kit.open();
    const queue = backplane.queue('tiny-rerank');
    while ((await queue.depth()) === 0) await new Promise((resolve) => setImmediate(resolve));
    await running.close();
    expect((await answer).status).toBe(503);
    expect(await queue.depth()).toBe(0);
  });

  it('says in one line that its port is in use, and leaves nothing open', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await expect(start(port)).rejects.toThrow(
      `Port ${port} of 127.0.0.1 is in use: stop what uses it, or choose another with HEADRACE_PORT.`,
    );
    other.close();
  });
});

it('an API process without its database says which variable to look at', async () => {
  const databaseUrl = 'postgres://user:password@127.0.0.1:1/none';
  const starting = startApi({ config: loadConfig({}), databaseUrl, catalogue, logger });
  await expect(starting).rejects.toThrow(
    /^DATABASE_URL: 127\.0\.0\.1:1 cannot be reached \((?!.*password).*\)$/,
  );
});
