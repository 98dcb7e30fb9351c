import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Backplane, Delivery } from '../../../src/platform/backplane/backplane.js';
import { openBackplane } from '../../../src/platform/backplane/open-backplane.js';
import { createLogger } from '../../../src/platform/logger.js';
import { canStopServer, type OwnServer, startOwnServer } from '../../support/backplanes.js';
import { deferred } from '../../support/deferred.js';
import { freePort } from '../../support/free-port.js';
import { jobFor } from '../../support/jobs.js';

const silent = createLogger({ level: 'silent', name: 'test' });

for (const kind of ['redis', 'postgres'] as const) {
  const possible = canStopServer(kind) && (kind === 'postgres' || inject('redis').kind !== 'none');
  describe.skipIf(!possible)(`${kind} stopped and started again`, () => {
    let server: OwnServer;
    let backplane: Backplane;
    const lines: string[] = [];
    const model = randomUUID();
    const channel = `test.${randomUUID()}`;
    const holding = randomUUID();
    const lost = deferred();
    let taken = deferred<string>();
    let heard = deferred<string>();

    beforeAll(async () => {
      server = await startOwnServer(kind);
      const sink = new Writable({
        write(chunk, _encoding, done) {
          lines.push(String(chunk));
          done();
        },
      });
      const logger = createLogger({ level: 'info', name: 'test' }, sink);
      backplane = await openBackplane({ ...server.settings, logger });
      await backplane.consume(model, async ({ jobId }) => taken.resolve(jobId), { concurrency: 4 });
      await backplane.channel.subscribe(channel, (message) => heard.resolve(message));
      const held = deferred();
      const hold = async ({ signal }: Delivery) => {
        signal.addEventListener('abort', () => lost.resolve());
        held.resolve();
        await lost.promise;
      };
      await backplane.consume(holding, hold, { concurrency: 1, lockMs: 1_000 });
      await backplane.queue(holding).add(jobFor(holding));
      await held.promise;
      await server.stop();
    });
    afterAll(async () => {
      await backplane?.close();
      await server?.close();
    });

    test('a job whose lock can no longer be renewed is aborted: another consumer may get it', async () => {
      await lost.promise;
    });

    test('everything rejects soon while the server is away', async () => {
      const queue = backplane.queue(model);
      const signal = AbortSignal.timeout(8_000);
      await expect(queue.add(jobFor(model))).rejects.toThrow();
      await expect(backplane.queue(randomUUID()).add(jobFor(model))).rejects.toThrow();
      await expect(queue.depth()).rejects.toThrow();
      await expect(backplane.channel.publish(channel, 'lost')).rejects.toThrow();
      await expect(backplane.check(signal)).rejects.toThrow();
      expect(signal.aborted).toBe(false);
    });

    test('consumers and subscriptions of before work when it is back, and nothing of the outage comes late', async () => {
      taken = deferred();
      heard = deferred();
      await server.start();
      const job = jobFor(model);
      await expect
        .poll(
          () =>
            backplane
              .queue(model)
              .add(job)
              .then(() => 'added', String),
          { timeout: 15_000 },
        )
        .toBe('added');
      expect(await taken.promise).toBe(job.id);
      await expect
        .poll(() => backplane.check(AbortSignal.timeout(1_000)).then(() => 'up', String), { timeout: 15_000 })
        .toBe('up');
      await backplane.channel.publish(channel, 'after');
      expect(await heard.promise).toBe('after');
    });

    test('the outage is logged once when it begins and once when it ends', () => {
      const messages: string[] = lines.map((line) => JSON.parse(line).msg);
      expect(messages.filter((message) => /away|back|ECONN|closed|terminat/i.test(message))).toEqual([
        expect.stringContaining('is away'),
        expect.stringContaining('is back'),
      ]);
    });

    test('a backplane closes while its server is away', async () => {
      await server.stop();
      await backplane.close();
    });
  });
}

describe('no server', () => {
  test.each(['redis', 'postgresql'])(
    'opening on %s names the variable and the address, not the password',
    async (scheme) => {
      const address = `127.0.0.1:${await freePort()}`;
      const url = `${scheme}://someone:hunter2@${address}/0`;
      const settings =
        scheme === 'redis' ? { redisUrl: url, databaseUrl: '' } : { redisUrl: undefined, databaseUrl: url };
      const error = await openBackplane({ ...settings, logger: silent }).then(
        () => new Error('opened'),
        (reason: Error) => reason,
      );
      expect(error.message).toMatch(scheme === 'redis' ? /^REDIS_URL: / : /^DATABASE_URL: /);
      expect(error.message).toContain(address);
      expect(error.message).toContain('ECONNREFUSED');
      expect(error.message).not.toContain('hunter2');
    },
  );
});
