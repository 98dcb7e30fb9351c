import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PostgresLimitStore } from '../../src/api/limit-store.js';
import { ServiceError } from '../../src/contract/errors.js';
import type { Limits } from '../../src/contract/limits.js';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { HeldRequest } from '../../src/worker/held-request.js';
import type { Reply } from '../../src/worker/publish.js';
import { Reservations } from '../../src/worker/reservations.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { fc } from '../support/property.js';
import { chatJob, model } from './support/workbench.js';

const keyId = randomUUID();
const start = new Date('2026-03-04T10:20:30Z');
let server: TestDatabase;
let database: Database;
let store: PostgresLimitStore;
let accountId: string;
let now: Date;

beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase(server.url, { logger: pino({ level: 'silent' }) });
  store = new PostgresLimitStore(database, { now: () => now });
});
beforeEach(async () => {
  now = start;
  accountId = await newAccount();
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

const newAccount = async () => (await database.client.account.create({ data: { name: randomUUID() } })).id;

/** What the API process does with a request, and how a worker then holds it; undefined where it is refused. */
async function admit(tokens: number, limits: Limits): Promise<HeldRequest | undefined> {
  const id = randomUUID();
  const lane = { accountId, model, operation: 'chat' as const, defaults: limits, apiId: 'api' };
  const [verdict] = await store.reserve(lane, [{ id, keyId, endUser: null, tokens, images: 0 }]);
  if (verdict!.refused !== undefined) return undefined;
  const job = chatJob({ id, reservedTokens: tokens, caller: { accountId, keyId, endUser: null } });
  const request = new HeldRequest({ job, reply: {} as Reply, clock: Date });
  request.release();
  return request;
}

const cover = (request: HeldRequest, tokens: number, limits: Limits) =>
  new Reservations({ database, limits, now: () => now }).cover(request, tokens);
const counter = () =>
  database.client.limitCounter.findUniqueOrThrow({ where: { accountId_model: { accountId, model } } });

describe('a request that needs more than was estimated', () => {
  it('gets it where its account has as many left', async () => {
    const request = (await admit(10, { tpm: 100 }))!;
    await cover(request, 100, { tpm: 100 });
    expect(request.reservedTokens).toBe(100);
    expect(await counter()).toMatchObject({ minuteTokens: 100n, dayTokens: 100n, minuteRequests: 1n });
    expect(await admit(1, { tpm: 100 })).toBeUndefined();
  });

  it.each([
    ['tpm', 'tpmLimit', 30],
    ['tpd', 'tpdLimit', 49_170],
  ] as const)(
    'is refused by %s where it has not, and counts what was estimated',
    async (name, kind, seconds) => {
      const limits = { [name]: 100 };
      const request = (await admit(10, limits))!;
      await admit(50, limits);
      await expect(cover(request, 51, limits)).rejects.toMatchObject({ kind, retryAfterSeconds: seconds });
      expect(await counter()).toMatchObject({ minuteTokens: 60n, dayTokens: 60n });
      await cover(request, 50, limits);
      expect(await counter()).toMatchObject({ minuteTokens: 100n });
    },
  );

  it('is measured by the limits of its account before those of the model', async () => {
    await database.client.limitOverride.create({ data: { accountId, tpm: 20, model } });
    const request = (await admit(10, { tpm: 100 }))!;
    await expect(cover(request, 21, { tpm: 100 })).rejects.toMatchObject({ kind: 'tpmLimit' });
    await cover(request, 20, { tpm: 100 });
  });

  it('is told to come again when nobody waits for it any more', async () => {
    const request = (await admit(10, {}))!;
    await store.settle({ accountId, model }, [{ id: request.job.id, tokens: 0 }]);
    await expect(cover(request, 11, {})).rejects.toMatchObject({ kind: 'overloaded' });
  });

  it('counts in the minute that has come meanwhile, as a whole', async () => {
    const request = (await admit(10, { tpm: 100, tpd: 100 }))!;
    now = new Date('2026-03-04T10:21:00Z');
    await admit(45, { tpm: 100, tpd: 100 });
    await expect(cover(request, 56, { tpm: 100, tpd: 1_000 })).rejects.toMatchObject({ kind: 'tpmLimit' });
    await cover(request, 55, { tpm: 100, tpd: 100 });
    expect(await counter()).toMatchObject({ minuteTokens: 100n, dayTokens: 100n });
    await store.settle({ accountId, model }, [{ id: request.job.id, tokens: 15 }]);
    expect(await counter()).toMatchObject({ minuteTokens: 60n, dayTokens: 60n });
  });
});

it('a request that needs no more than was estimated asks nobody', async () => {
  const request = (await admit(10, {}))!;
  const query = () => Promise.reject(new Error('asked'));
  const reservations = new Reservations({ database: { query }, limits: {} });
  await reservations.cover(request, 10);
  await expect(reservations.cover(request, 11)).rejects.toMatchObject({ kind: 'overloaded' });
  request.reservedTokens = undefined;
  await reservations.cover(request, 11);
});

it('whatever is estimated, needed and used, and whenever: no minute and no day passes its limit', async () => {
  const limits = { tpm: 100, tpd: 250 };
  const step = fc.oneof(
    fc.record({ do: fc.constant('begin' as const), estimate: fc.nat(40), need: fc.nat(80) }),
    fc.record({ do: fc.constant('cover' as const), which: fc.nat() }),
    fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    fc.record({ do: fc.constant('wait' as const), seconds: fc.nat(70) }),
  );
  const scenario = async (steps: (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) => {
    now = start;
    accountId = await newAccount();
    const running: { request: HeldRequest; need: number; covered: boolean }[] = [];
    for (const each of steps) {
      const one = 'which' in each ? running[each.which % Math.max(1, running.length)] : undefined;
      if (each.do === 'wait') now = new Date(now.getTime() + each.seconds * 1000);
      if (each.do === 'begin') {
        const request = await admit(each.estimate, limits);
        if (request) running.push({ request, need: each.need, covered: false });
      }
      if (each.do === 'cover' && one) {
        one.covered = await cover(one.request, one.need, limits).then(
          () => true,
          (error) => {
            expect(error).toBeInstanceOf(ServiceError);
            return false;
          },
        );
      }
      if (each.do === 'end' && one) {
        // What was not covered was not run.
        const tokens = one.covered ? Math.floor(one.need * each.share) : 0;
        await store.settle({ accountId, model }, [{ id: one.request.job.id, tokens }]);
        running.splice(running.indexOf(one), 1);
      }
      const rows = await database.client.limitCounter.findMany({ where: { accountId } });
      for (const { minuteTokens, dayTokens } of rows) {
        expect(Number(minuteTokens)).toBeLessThanOrEqual(limits.tpm);
        expect(Number(dayTokens)).toBeLessThanOrEqual(limits.tpd);
      }
      for (const { request, need, covered } of running) {
        if (covered) expect(request.reservedTokens).toBeGreaterThanOrEqual(need);
      }
    }
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), scenario), {
    numRuns: 40,
  });
});
