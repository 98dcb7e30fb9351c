import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { toApiDatabase } from '../../src/api/api-database.js';
import { buildApp } from '../../src/api/app.js';
import { removeOld } from '../../src/api/retention.js';
import { PostgresUsageStore, type UsageEntry } from '../../src/api/usage-store.js';
import { usageReportSchema } from '../../src/contract/usage.js';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createKey } from '../../src/platform/keys.js';
import { MemoryBackplane } from '../support/memory-backplane.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { catalogue } from './support/test-app.js';

const logger = pino({ level: 'silent' });
let server: TestDatabase;
let database: Database;
let store: PostgresUsageStore;
let app: FastifyInstance;
let mine: { accountId: string; keyId: string; secret: string };

async function makeCaller(name: string = randomUUID(), keyName = 'key') {
  const key = await createKey({ database, accountName: name, keyName });
  const { accountId } = await database.client.apiKey.findUniqueOrThrow({ where: { id: key.id } });
  return { accountId, keyId: key.id, secret: key.secret };
}

beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase(server.url, { logger });
  store = new PostgresUsageStore(database);
  app = await buildApp({
    apiId: 'api',
    database: toApiDatabase(database),
    backplane: new MemoryBackplane(),
    presence: { workersOf: () => [] },
    catalogue,
    logger,
    version: '1.0.0',
    config: { bodyLimitBytes: 1 << 20, requestTimeoutMs: 1_000, maxQueueDepth: 10 },
    timing: { drainMs: 0 },
  });
});
beforeEach(async () => {
  mine = await makeCaller();
});
afterAll(async () => {
  await app.close();
  await database.close();
  await server.drop();
});

function entry(fields: Partial<UsageEntry> = {}): UsageEntry {
  return {
    id: randomUUID(),
    accountId: mine.accountId,
    keyId: mine.keyId,
    model: 'tiny-chat',
    operation: 'chat',
    endUser: null,
    promptTokens: 10,
    completionTokens: 5,
    cachedTokens: 2,
    finishReason: 'stop',
    status: 200,
    queueMs: 1,
    firstTokenMs: 2,
    totalMs: 3,
    createdAt: new Date('2026-03-04T10:20:30Z'),
    ...fields,
  };
}

const get = (query: Record<string, string>, options: { secret?: string; accept?: string } = {}) =>
  app.inject({
    method: 'GET',
    url: `/v1/usage?${new URLSearchParams({ start: '2026-03-01', end: '2026-04-01', ...query })}`,
    headers: {
      authorization: `Bearer ${options.secret ?? mine.secret}`,
      ...(options.accept && { accept: options.accept }),
    },
  });
const rows = async (query: Record<string, string> = {}) =>
  usageReportSchema.parse((await get(query)).json()).data;

describe('a report', () => {
  it('sums up what was written', async () => {
    await store.add([
      entry(),
      entry(),
      entry({ status: 429, promptTokens: 0, completionTokens: 0, cachedTokens: 0 }),
    ]);
    expect(await rows()).toEqual([
      {
        requests: 3,
        failed_requests: 1,
        prompt_tokens: 20,
        completion_tokens: 10,
        cached_tokens: 4,
        total_tokens: 30,
      },
    ]);
  });

  it('counts a request once, however often and by how many it is written', async () => {
    const same = entry();
    await Promise.all(Array.from({ length: 8 }, () => store.add([same])));
    expect(await rows()).toMatchObject([{ requests: 1, prompt_tokens: 10 }]);
  });

  it('loses nothing when several processes write the same hours', async () => {
    const models = ['a', 'b', 'c'];
    const batches = Array.from({ length: 20 }, (_, i) =>
      [...models.slice(i % 3), ...models.slice(0, i % 3)].map((model) => entry({ model })),
    );
    await Promise.all(batches.map((batch) => store.add(batch)));
    expect((await rows({ group_by: 'model' })).map(({ model, requests }) => [model, requests])).toEqual([
      ['a', 20],
      ['b', 20],
      ['c', 20],
    ]);
  });

  it('groups by day, model and key', async () => {
    const other = await createKey({
      database,
      accountName: (await database.client.account.findUniqueOrThrow({ where: { id: mine.accountId } })).name,
      keyName: 'other',
    });
    await store.add([
      entry(),
      entry({ keyId: other.id }),
      entry({ model: 'tiny-rerank' }),
      entry({ createdAt: new Date('2026-03-05T00:00:00Z') }),
    ]);
    const all = await rows({ group_by: 'key,day,model' });
    expect(all).toHaveLength(4);
    expect(all.at(-1)).toMatchObject({
      day: '2026-03-05',
      model: 'tiny-chat',
      key_id: mine.keyId,
      key_name: 'key',
    });
    expect((await rows({ group_by: 'day' })).map(({ day, requests }) => [day, requests])).toEqual([
      ['2026-03-04', 3],
      ['2026-03-05', 1],
    ]);
  });

  it('has the whole hour that its range begins in, and nothing from its end on', async () => {
    await store.add([entry({ createdAt: new Date('2026-03-04T11:00:00Z') }), entry()]);
    const start = '2026-03-04T10:45:00Z';
    expect(await rows({ start, end: '2026-03-04T11:00:00Z' })).toMatchObject([{ requests: 1 }]);
  });

  it('is a table for who accepts one', async () => {
    const caller = await makeCaller(undefined, '=cmd("x"),y');
    await store.add([entry({ accountId: caller.accountId, keyId: caller.keyId })]);
    const response = await get({ group_by: 'key' }, { secret: caller.secret, accept: 'text/csv' });
    expect(response.headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(response.body).toBe(
      'key_id,key_name,requests,failed_requests,prompt_tokens,completion_tokens,cached_tokens,total_tokens\r\n' +
        `${caller.keyId},"'=cmd(""x""),y",1,0,10,5,2,15\r\n`,
    );
  });

  it.each([
    [{ start: 'yesterday' }, 'start: must be a date'],
    [{ start: '2026-04-01', end: '2026-03-01' }, 'start: must be before end'],
    [{ start: '2024-01-01', end: '2026-01-01' }, 'start: must be at most 366 days'],
    [{ group_by: "model'; DROP TABLE accounts; --" }, 'group_by[0]: must be one of'],
  ])('says what is wrong with %j', async (query, message) => {
    const response = await get(query);
    expect(response.statusCode).toBe(400);
    expect(response.json().message).toContain(message);
  });
});

describe('the usage of an account', () => {
  it('is not shown to a key of another', async () => {
    await store.add([entry()]);
    const stranger = await makeCaller();
    const queries: Record<string, string>[] = [
      {},
      { group_by: 'key,model,day' },
      { account_id: mine.accountId, account: mine.accountId },
    ];
    for (const query of queries) {
      const { data } = usageReportSchema.parse((await get(query, { secret: stranger.secret })).json());
      expect(data).toEqual([]);
    }
  });

  it('is shown to nobody without a key', async () => {
    expect((await get({}, { secret: 'sk-wrong' })).statusCode).toBe(401);
  });
});

it('what is older than it is kept leaves the ledger in small batches, and its sums stay', async () => {
  const old = Array.from({ length: 25 }, () => entry({ createdAt: new Date('2026-03-04T00:30:00Z') }));
  const recent = entry({ createdAt: new Date() });
  await store.add([...old, recent]);
  const before = await rows();
  const days = (Date.now() - new Date('2026-03-04T01:00:00Z').getTime()) / 86_400_000;
  const options = { database, days, rows: 10 };
  expect(await removeOld('usage', options, new AbortController().signal)).toBe(25);
  const left = await database.client.usageRecord.findMany({ where: { accountId: mine.accountId } });
  expect(left.map(({ id }) => id)).toEqual([recent.id]);
  expect(await rows()).toEqual(before);
});
