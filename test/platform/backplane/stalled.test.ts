import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Backplane, Delivery } from '../../../src/platform/backplane/backplane.js';
import { type BackplaneKit, describeBackplanes } from '../../support/backplanes.js';
import { deferred } from '../../support/deferred.js';
import { jobFor } from '../../support/jobs.js';
import { forkTypeScript, type TypeScriptChild } from '../../support/typescript-child.js';

const lockMs = 1_000;

describeBackplanes('a killed consumer', (kit) => {
  test('loses its job to another one, as the second attempt', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const job = jobFor(model);
    await killWhileHolding({ kit, backplane, model, add: () => backplane.queue(model).add(job) });

    const again = deferred<Delivery>();
    await backplane.consume(model, async (delivery) => again.resolve(delivery), { concurrency: 1, lockMs });
    expect(await again.promise).toMatchObject({ jobId: job.id, payload: job, attempt: 2 });
  });

  test('does not get a third job killed: after two the job is dropped', async () => {
    const backplane = await kit.open();
    const model = randomUUID();
    const job = jobFor(model);
    await killWhileHolding({ kit, backplane, model, add: () => backplane.queue(model).add(job) });
    await killWhileHolding({ kit, backplane, model });

    const delivered: string[] = [];
    const handler = async ({ jobId }: Delivery) => void delivered.push(jobId);
    await backplane.consume(model, handler, { concurrency: 1, lockMs });
    await expect.poll(() => backplane.queue(model).state(job.id), { timeout: 10_000 }).toBe('gone');
    expect(delivered).toEqual([]);
  });
});

/** Has a child process take a job and kills it with SIGKILL before it ends the job. */
async function killWhileHolding(options: {
  kit: BackplaneKit;
  backplane: Backplane;
  model: string;
  add?: () => Promise<void>;
}): Promise<void> {
  const child = startStuckConsumer(options.kit, options.model);
  expect(await child.next()).toBe('ready');
  await options.add?.();
  expect(await child.next()).toMatchObject({ jobId: expect.any(String) });
  child.process.kill('SIGKILL');
  expect(await child.ended).toBe('SIGKILL');
}

function startStuckConsumer({ settings }: BackplaneKit, model: string): TypeScriptChild {
  const program = new URL('./stuck-consumer.ts', import.meta.url);
  return forkTypeScript(program, [JSON.stringify(settings), model, String(lockMs)]);
}
