import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { RerankJob } from '../../src/contract/job.js';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { OrphanLedger } from '../../src/worker/orphan-ledger.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const logger = pino({ level: 'silent' });
const caller = { accountId: randomUUID(), keyId: randomUUID(), endUser: 'someone' };
const spent = { promptTokens: 30, completionTokens: 2, cachedTokens: 1 };
let server: TestDatabase;
let database: Database;
let gone: Set<string>;
let now: number;
let ledger: OrphanLedger;

beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase(server.url, { logger });
});
beforeEach(() => {
  gone = new Set();
  now = 1_000_000;
  ledger = new OrphanLedger({
    client: database.client,
    isGone: (id) => gone.has(id),
    clock: { now: () => now },
    logger,
  });
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

const job = (fields: Partial<RerankJob> = {}): RerankJob => ({
  kind: 'rerank',
  id: randomUUID(),
  replyTo: 'api',
  model: 'm',
  enqueuedAt: now - 500,
  deadlineAt: now + 1_000,
  priority: 'interactive',
  query: 'q',
  documents: ['d'],
  maxChunksPerDoc: 1,
  overlapTokens: 0,
  caller,
  ...fields,
});
const row = async (id: string) => {
  await ledger.close();
  return database.client.usageRecord.findUnique({ where: { id } });
};

it('writes what a request cost whose API process is gone', async () => {
  gone.add('api');
  const done = job();
  ledger.add({ job: done, spent });
  expect(await row(done.id)).toMatchObject({ ...caller, ...spent, finishReason: 'lost', totalMs: 500 });
});

it('writes what had ended shortly before its API process went', async () => {
  const done = job();
  const other = job({ replyTo: 'another' });
  ledger.add({ job: done, spent });
  ledger.add({ job: other, spent });
  expect(await row(done.id)).toBeNull();
  gone.add('api');
  ledger.apiGone('api');
  expect(await row(done.id)).toMatchObject(spent);
  expect(await row(other.id)).toBeNull();
});

it('leaves a row as it is that the API process wrote before it went', async () => {
  const done = job();
  const own = { ...caller, ...spent, promptTokens: 99, finishReason: 'ranked', status: 200, totalMs: 1 };
  await database.client.usageRecord.create({
    data: { id: done.id, model: 'm', operation: 'rerank', ...own },
  });
  ledger.add({ job: done, spent });
  ledger.apiGone('api');
  expect(await row(done.id)).toMatchObject({ promptTokens: 99, finishReason: 'ranked' });
});

it('forgets what its API process has had the time to write', async () => {
  const early = job();
  ledger.add({ job: early, spent });
  now += 60_000;
  ledger.add({ job: job(), spent });
  ledger.apiGone('api');
  expect(await row(early.id)).toBeNull();
});
