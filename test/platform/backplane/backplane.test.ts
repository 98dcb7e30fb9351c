import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { RerankJob } from '../../../src/contract/job.js';
import type { Delivery } from '../../../src/platform/backplane/backplane.js';
import { describeBackplanes } from '../../support/backplanes.js';

/** The smallest job there is. */
function jobFor(model: string, fields: Partial<RerankJob> = {}): RerankJob {
  return {
    kind: 'rerank',
    id: randomUUID(),
    replyTo: 'nobody',
    model,
    enqueuedAt: Date.now(),
    deadlineAt: Date.now() + 60_000,
    priority: 'interactive',
    query: 'q',
    documents: ['d'],
    maxChunksPerDoc: 1,
    overlapTokens: 0,
    ...fields,
  };
}

/** A promise and its `resolve`. */
function deferred<T = void>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describeBackplanes('queue', (kit) => {
  test('a job arrives as it was sent, as the first attempt', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const arrived = deferred<Delivery>();
    await backplane.consume(model, async (delivery) => arrived.resolve(delivery), { concurrency: 1 });
    const job = jobFor(model, { query: 'naïve \u0000 \ud800 😀' });
    await backplane.queue(model).add(job);
    const delivery = await arrived.promise;
    expect(delivery).toMatchObject({ jobId: job.id, payload: job, attempt: 1 });
  });
});
