import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type LimitedRequest, PostgresLimitStore } from '../../src/api/limit-store.js';
import type { Limits } from '../../src/contract/limits.js';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

let server: TestDatabase;
let database: Database;
let store: PostgresLimitStore;
let accountId: string;
let now: Date;
const keyId = randomUUID();

beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase(server.url, { logger: pino({ level: 'silent' }) });
  store = new PostgresLimitStore(database, { now: () => now });
});
beforeEach(async () => {
  now = new Date('2026-03-04T10:20:30Z');
  ({ id: accountId } = await database.client.account.create({ data: { name: randomUUID() } }));
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

const lane = (defaults: Limits, model = 'm') => ({
  accountId,
  model,
  operation: 'chat' as const,
  defaults,
  apiId: 'api',
});
const ask = (fields: Partial<LimitedRequest> = {}): LimitedRequest => ({
  id: randomUUID(),
  keyId,
  endUser: null,
  tokens: 0,
  images: 0,
  ...fields,
});
const times = (count: number, fields: Partial<LimitedRequest> = {}) =>
  Array.from({ length: count }, () => ask(fields));
const outcome = async (defaults: Limits, requests: LimitedRequest[]) =>
  (await store.reserve(lane(defaults), requests)).map(({ refused }) => refused ?? 'admitted');

describe('requests beyond a limit are refused by its name', () => {
  it.each([
    ['rpm', { rpm: 2 }, {}],
    ['rpd', { rpd: 2 }, {}],
    ['tpm', { tpm: 250 }, { tokens: 100 }],
    ['tpd', { tpd: 250 }, { tokens: 100 }],
    ['ipm', { ipm: 5 }, { images: 2 }],
    ['ipd', { ipd: 5 }, { images: 2 }],
  ])('%s', async (name, limits, fields) => {
    expect(await outcome(limits, times(3, fields))).toEqual(['admitted', 'admitted', name]);
    expect(await outcome(limits, times(1, fields))).toEqual([name]);
  });

  it('by the day where the minute refuses too', async () => {
    expect(await outcome({ rpm: 0, rpd: 0 }, times(1))).toEqual(['rpd']);
  });

  it('and a smaller one behind them is admitted', async () => {
    const requests = [ask({ tokens: 80 }), ask({ tokens: 30 }), ask({ tokens: 20 })];
    expect(await outcome({ tpm: 100 }, requests)).toEqual(['admitted', 'tpm', 'admitted']);
  });

  it('and count nowhere', async () => {
    await outcome({ rpm: 10, tpm: 100 }, [ask({ tokens: 101 })]);
    const [verdict] = await store.reserve(lane({ rpm: 10, tpm: 100 }), [ask({ tokens: 100 })]);
    expect(verdict).toMatchObject({
      refused: undefined,
      requests: { limit: 10, remaining: 9 },
      tokens: { limit: 100, remaining: 0 },
    });
  });

  it('without images they pass a limit of images', async () => {
    expect(await outcome({ ipm: 0 }, times(1))).toEqual(['admitted']);
  });
});

describe('windows', () => {
  it('begin with the UTC minute', async () => {
    now = new Date('2026-03-04T10:20:59.999Z');
    expect(await outcome({ rpm: 1 }, times(2))).toEqual(['admitted', 'rpm']);
    now = new Date('2026-03-04T10:21:00Z');
    expect(await outcome({ rpm: 1 }, times(2))).toEqual(['admitted', 'rpm']);
  });

  it('begin with the UTC day, wherever the database is', async () => {
    now = new Date('2026-03-04T23:59:59.999Z');
    expect(await outcome({ rpd: 1 }, times(2))).toEqual(['admitted', 'rpd']);
    now = new Date('2026-03-05T00:00:00Z');
    expect(await outcome({ rpd: 1 }, times(2))).toEqual(['admitted', 'rpd']);
  });

  it('do not open again when the clock is set back by a little', async () => {
    now = new Date('2026-03-04T10:21:00Z');
    await outcome({ rpm: 1 }, times(1));
    now = new Date('2026-03-04T10:20:59Z');
    expect(await outcome({ rpm: 1 }, times(1))).toEqual(['rpm']);
    now = new Date('2026-03-04T10:21:01Z');
    expect(await outcome({ rpm: 1 }, times(1))).toEqual(['rpm']);
  });

  it('follow a clock that was far ahead', async () => {
    now = new Date('2030-01-01T00:00:00Z');
    await outcome({ rpm: 1, rpd: 1 }, times(1));
    now = new Date('2026-03-04T10:20:30Z');
    expect(await outcome({ rpm: 1, rpd: 1 }, times(1))).toEqual(['admitted']);
  });

  it('are those of the database when no time is given', async () => {
    const own = new PostgresLimitStore(database);
    const [verdict] = await own.reserve(lane({}), times(1));
    expect(Math.abs(verdict!.at.getTime() - Date.now())).toBeLessThan(60_000);
  });
});

describe('the limits of an account', () => {
  const override = (fields: Limits & { model?: string }) =>
    database.client.limitOverride.create({ data: { accountId, ...fields } });

  it('come before those of the model', async () => {
    await override({ rpm: 1 });
    expect(await outcome({ rpm: 2 }, times(2))).toEqual(['admitted', 'rpm']);
  });

  it('on one model come before both', async () => {
    await override({ rpm: 0 });
    await override({ rpm: 2, model: 'm' });
    expect(await outcome({ rpm: 1 }, times(3))).toEqual(['admitted', 'admitted', 'rpm']);
  });

  it('leave those alone that they do not name', async () => {
    await override({ tpm: 5, model: 'm' });
    expect(await outcome({ rpm: 1 }, times(2))).toEqual(['admitted', 'rpm']);
  });

  it('of -1 are none', async () => {
    await override({ rpm: -1 });
    expect(await outcome({ rpm: 1 }, times(3))).toEqual(['admitted', 'admitted', 'admitted']);
  });

  it('are counted apart for each model', async () => {
    await store.reserve(lane({ rpm: 1 }, 'one'), times(1));
    const [verdict] = await store.reserve(lane({ rpm: 1 }, 'another'), times(1));
    expect(verdict!.refused).toBeUndefined();
  });
});

describe('a reservation', () => {
  const remaining = async (limits: Limits) => {
    const [verdict] = await store.reserve(lane(limits), times(1));
    return verdict!.tokens!.remaining;
  };

  it('becomes what was used', async () => {
    const request = ask({ tokens: 90 });
    await store.reserve(lane({ tpm: 100, tpd: 100 }), [request]);
    await store.settle({ accountId, model: 'm' }, [{ id: request.id, tokens: 30 }]);
    expect(await remaining({ tpm: 100, tpd: 100 })).toBe(70);
  });

  it('that was too small closes the window by what it missed', async () => {
    const request = ask({ tokens: 10 });
    await store.reserve(lane({ tpm: 100 }), [request]);
    await store.settle({ accountId, model: 'm' }, [{ id: request.id, tokens: 140 }]);
    expect(await remaining({ tpm: 100 })).toBe(0);
    expect(await outcome({ tpm: 100 }, [ask({ tokens: 1 })])).toEqual(['tpm']);
  });

  it('is settled once', async () => {
    const request = ask({ tokens: 50 });
    await store.reserve(lane({ tpm: 100 }), [request]);
    for (let i = 0; i < 2; i++) {
      await store.settle({ accountId, model: 'm' }, [{ id: request.id, tokens: 20 }]);
    }
    expect(await remaining({ tpm: 100 })).toBe(80);
  });

  it('of an earlier minute does not change this one, but the day', async () => {
    const request = ask({ tokens: 50 });
    await store.reserve(lane({ tpm: 100, tpd: 100 }), [request]);
    now = new Date('2026-03-04T10:21:00Z');
    expect(await outcome({ tpm: 100, tpd: 100 }, [ask({ tokens: 60 })])).toEqual(['tpd']);
    await store.settle({ accountId, model: 'm' }, [{ id: request.id, tokens: 20 }]);
    expect(await remaining({ tpm: 100, tpd: 100 })).toBe(100);
    expect(await outcome({ tpm: 100, tpd: 100 }, [ask({ tokens: 81 }), ask({ tokens: 80 })])).toEqual([
      'tpd',
      'admitted',
    ]);
  });

  it('cannot be settled by another account', async () => {
    const request = ask({ tokens: 90 });
    await store.reserve(lane({ tpm: 100 }), [request]);
    const other = await database.client.account.create({ data: { name: randomUUID() } });
    await store.settle({ accountId: other.id, model: 'm' }, [{ id: request.id, tokens: 0 }]);
    expect(await remaining({ tpm: 100 })).toBe(10);
  });

  it('of a process that died is given back, and its request has a row in the ledger', async () => {
    const request = ask({ tokens: 90, endUser: 'someone' });
    await store.reserve({ ...lane({ tpm: 100 }), apiId: 'dead' }, [request]);
    expect(await store.sweep(30_000)).toBeGreaterThan(0);
    expect(await remaining({ tpm: 100 })).toBe(100);
    expect(await database.client.usageRecord.findUniqueOrThrow({ where: { id: request.id } })).toMatchObject({
      accountId,
      keyId,
      model: 'm',
      operation: 'chat',
      endUser: 'someone',
      finishReason: 'lost',
    });
  });

  it('of a process that died becomes what a worker wrote that it cost', async () => {
    const request = ask({ tokens: 90 });
    await store.reserve({ ...lane({ tpm: 100 }), apiId: 'dead' }, [request]);
    await database.client.usageRecord.create({
      data: {
        id: request.id,
        accountId,
        keyId,
        model: 'm',
        operation: 'chat',
        promptTokens: 10,
        completionTokens: 5,
        finishReason: 'cancelled',
        status: 499,
        totalMs: 1,
      },
    });
    await store.sweep(30_000);
    expect(await remaining({ tpm: 100 })).toBe(85);
  });

  it('of a process that is alive is left alone', async () => {
    await store.beat('alive');
    const request = ask({ tokens: 90 });
    await store.reserve({ ...lane({ tpm: 100 }), apiId: 'alive' }, [request]);
    await store.sweep(30_000);
    expect(await remaining({ tpm: 100 })).toBe(10);
    await store.leave('alive');
    await store.sweep(30_000);
    expect(await remaining({ tpm: 100 })).toBe(100);
  });
});

it('takes names as they are: nothing in them is SQL', async () => {
  const model = `m'; DROP TABLE limit_counters; --"$1\\`;
  const request = ask({ endUser: `x'); DELETE FROM accounts; --`, tokens: 5 });
  await store.reserve(lane({ rpm: 1 }, model), [request]);
  const [verdict] = await store.reserve(lane({ rpm: 1 }, model), times(1));
  expect(verdict!.refused).toBe('rpm');
  await store.settle({ accountId, model }, [{ id: `' OR 1=1 --`, tokens: 0 }]);
  expect(
    await database.client.limitReservation.findUniqueOrThrow({ where: { id: request.id } }),
  ).toMatchObject({
    model,
    endUser: request.endUser,
  });
});

describe('processes that ask at once', () => {
  it('never admit more than the limit together', async () => {
    const pools = Array.from({ length: 4 }, () =>
      openDatabase(server.url, { logger: pino({ level: 'silent' }), maxConnections: 3 }),
    );
    try {
      const stores = pools.map((pool) => new PostgresLimitStore(pool, { now: () => now }));
      const outcomes = await Promise.all(
        Array.from({ length: 500 }, async (_, i) => {
          const own = { ...lane({ rpm: 100 }), apiId: `api-${i % 4}` };
          const [verdict] = await stores[i % 4]!.reserve(own, times(1));
          return verdict!.refused ?? 'admitted';
        }),
      );
      expect(outcomes.filter((each) => each === 'admitted')).toHaveLength(100);
      expect(outcomes.filter((each) => each === 'rpm')).toHaveLength(400);
    } finally {
      await Promise.all(pools.map((pool) => pool.close()));
    }
  });
});
