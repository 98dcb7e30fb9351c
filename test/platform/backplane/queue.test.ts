import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, test } from 'vitest';
import type { Delivery } from '../../../src/platform/backplane/backplane.js';
import { type BackplaneKit, describeBackplanes } from '../../support/backplanes.js';
import { deferred } from '../../support/deferred.js';
import { jobFor } from '../../support/jobs.js';

describeBackplanes('queue', (kit) => {
  test('a job arrives as it was sent, whatever its text, as the first attempt', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const arrived = deferred<Delivery>();
    await backplane.consume(model, async (delivery) => arrived.resolve(delivery), { concurrency: 1 });
    const job = jobFor(model, { query: 'naïve \u0000 \ud800 😀' });
    await backplane.queue(model).add(job);
    expect(await arrived.promise).toMatchObject({ jobId: job.id, payload: job, attempt: 1 });
  });

  test('a model name may hold what queue names may not', async () => {
    const backplane = await kit.open();
    const model = `org/model:v1.5 ${randomUUID()}`;
    const arrived = deferred<string>();
    await backplane.consume(model, async ({ jobId }) => arrived.resolve(jobId), { concurrency: 1 });
    const job = jobFor(model);
    await backplane.queue(model).add(job);
    expect(await arrived.promise).toBe(job.id);
  });

  test('jobs are taken in the order they came, interactive ahead of batch', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const queue = backplane.queue(model);
    const batch = [jobFor(model, { priority: 'batch' }), jobFor(model, { priority: 'batch' })];
    const interactive = [jobFor(model), jobFor(model)];
    for (const job of [...batch, ...interactive]) await queue.add(job);

    const taken: string[] = [];
    const all = deferred();
    const handler = async ({ jobId }: Delivery) => {
      if (taken.push(jobId) === 4) all.resolve();
    };
    await backplane.consume(model, handler, { concurrency: 1 });
    await all.promise;
    expect(taken).toEqual([...interactive, ...batch].map(({ id }) => id));
  });

  test('a consumer holds as many jobs as it may at once, and no more', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const queue = backplane.queue(model);
    const held = [deferred(), deferred()];
    const third = deferred<Delivery>();
    const release = deferred();
    let count = 0;
    const handler = async (delivery: Delivery) => {
      count += 1;
      if (count === 3) return third.resolve(delivery);
      held[count - 1]?.resolve();
      await release.promise;
    };
    await backplane.consume(model, handler, { concurrency: 2 });
    for (let index = 0; index < 3; index += 1) await queue.add(jobFor(model));
    await Promise.all(held.map(({ promise }) => promise));
    expect(await queue.depth()).toBe(1);
    release.resolve();
    await third.promise;
  });

  test('a waiting job can be removed and never runs', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const queue = backplane.queue(model);
    const [unwanted, wanted] = [jobFor(model), jobFor(model)];
    await queue.add(unwanted);
    await queue.add(wanted);
    expect(await queue.remove(unwanted.id)).toBe(true);
    expect(await queue.state(unwanted.id)).toBe('gone');

    const first = deferred<string>();
    await backplane.consume(model, async ({ jobId }) => first.resolve(jobId), { concurrency: 1 });
    expect(await first.promise).toBe(wanted.id);
  });

  test('a waiting batch job can be removed too', async () => {
    const backplane = await kit.open();
    const queue = backplane.queue(randomUUID());
    const job = jobFor('any', { priority: 'batch' });
    await queue.add(job);
    expect(await queue.state(job.id)).toBe('waiting');
    expect(await queue.remove(job.id)).toBe(true);
    expect(await queue.depth()).toBe(0);
  });

  test('a job that runs is not removed', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const queue = backplane.queue(model);
    const started = deferred();
    const release = deferred();
    const handler = async () => {
      started.resolve();
      await release.promise;
    };
    await backplane.consume(model, handler, { concurrency: 1 });
    const job = jobFor(model);
    await queue.add(job);
    await started.promise;
    expect(await queue.remove(job.id)).toBe(false);
    expect(await queue.state(job.id)).toBe('active');
    release.resolve();
  });

  test('a job that never was is gone and is not removed', async () => {
    const queue = (await kit.open()).queue(randomUUID());
    expect(await queue.state(randomUUID())).toBe('gone');
    expect(await queue.remove(randomUUID())).toBe(false);
  });

  test.each(['resolves', 'rejects'])(
    'a job whose handler %s is over and leaves nothing of its text',
    async (how) => {
      const backplane = await kit.open();
      const model = randomUUID();
      const queue = backplane.queue(model);
      const secret = randomUUID();
      const job = jobFor(model, { query: secret });
      await queue.add(job);
      expect(await storedText(kit)).toContain(secret);
      const handler = async () => {
        if (how === 'rejects') throw new Error(`cannot do ${secret}`);
      };
      const consumer = await backplane.consume(model, handler, { concurrency: 1 });
      await expect.poll(() => queue.state(job.id)).toBe('gone');
      await consumer.close({ drainMs: 5_000 });
      expect(await storedText(kit)).not.toContain(secret);
    },
  );

  test('closing a consumer waits for the jobs it holds', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const queue = backplane.queue(model);
    const started = deferred();
    const release = deferred();
    let ended = false;
    const handler = async ({ signal }: Delivery) => {
      started.resolve();
      await release.promise;
      ended = !signal.aborted;
    };
    const consumer = await backplane.consume(model, handler, { concurrency: 1 });
    await queue.add(jobFor(model));
    await started.promise;
    const closing = consumer.close({ drainMs: 20_000 });
    const late = jobFor(model);
    await queue.add(late);
    release.resolve();
    await closing;
    expect(ended).toBe(true);
    expect(await queue.state(late.id)).toBe('waiting');
  });

  test('closing a consumer aborts the jobs that outlast the drain', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const started = deferred();
    const aborted = deferred();
    const handler = ({ signal }: Delivery) => {
      signal.addEventListener('abort', () => aborted.resolve());
      started.resolve();
      return aborted.promise;
    };
    const consumer = await backplane.consume(model, handler, { concurrency: 1 });
    const job = jobFor(model);
    await backplane.queue(model).add(job);
    await started.promise;
    await consumer.close({ drainMs: 0 });
    await aborted.promise;
    expect(await backplane.queue(model).state(job.id)).toBe('gone');
  });

  test('check resolves while the server answers', async () => {
    const backplane = await kit.open();
    await expect(backplane.check(AbortSignal.timeout(5_000))).resolves.toBeUndefined();
  });
});

/** Everything the server keeps of the queues, as one text. */
async function storedText({ settings }: BackplaneKit): Promise<string> {
  return settings.redisUrl ? redisText(settings.redisUrl) : postgresText(settings.databaseUrl);
}

/** How to read everything of a key, by its type. */
const readers: Record<string, (key: string) => [string, ...string[]]> = {
  string: (key) => ['GET', key],
  hash: (key) => ['HGETALL', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, '0', '-1'],
  stream: (key) => ['XRANGE', key, '-', '+'],
};

async function redisText(url: string): Promise<string> {
  const client = new Redis(url);
  try {
    const texts = (await client.keys('*')).map(async (key) => {
      const [command, ...args] = readers[await client.type(key)]?.(key) ?? ['TYPE', key];
      return `${key} ${JSON.stringify(await client.call(command, ...args))}`;
    });
    return (await Promise.all(texts)).join('\n');
  } finally {
    client.disconnect();
  }
}

async function postgresText(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      "SELECT query_to_xml(format('SELECT * FROM bullmq.%I', tablename), true, false, '') AS rows FROM pg_tables WHERE schemaname = 'bullmq'",
    );
    return JSON.stringify(rows);
  } finally {
    await client.end();
  }
}
