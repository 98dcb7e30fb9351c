import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type NamedRequest, PostgresIdempotencyStore } from '../../src/api/idempotency-store.js';
import { PostgresLimitStore } from '../../src/api/limit-store.js';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const answer = { status: 200, body: '{"a":"\\u0000"}' };
const takeOverMs = 60_000;
let server: TestDatabase;
let database: Database;
let store: PostgresIdempotencyStore;
let named: NamedRequest;

beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase(server.url, { logger: pino({ level: 'silent' }) });
  store = new PostgresIdempotencyStore(database);
  await new PostgresLimitStore(database).beat('alive');
});
beforeEach(() => {
  named = { accountId: randomUUID(), key: "k'; --", request: 'hash', apiId: 'alive' };
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

const claim = (fields: Partial<NamedRequest> = {}) => store.claim({ ...named, ...fields }, takeOverMs);
const age = (interval: string) =>
  database.client.$executeRawUnsafe(
    `UPDATE idempotent_answers SET created_at = created_at - interval '${interval}'`,
  );

it('one of many that claim a key at once is the first', async () => {
  const claims = await Promise.all(Array.from({ length: 20 }, () => claim()));
  expect(claims.filter(({ state }) => state === 'first')).toHaveLength(1);
  expect(claims.filter(({ state }) => state === 'running')).toHaveLength(19);
});

it('what was kept is the answer', async () => {
  await claim();
  await store.keep(named, answer);
  expect(await claim()).toEqual({ state: 'answered', ...answer });
});

it('the key of one account says nothing to another', async () => {
  await claim();
  await store.keep(named, answer);
  expect(await claim({ accountId: randomUUID() })).toEqual({ state: 'first' });
});

it('what an account has is counted, and nothing of another', async () => {
  expect(await store.held(named.accountId)).toEqual({ keys: 0, bytes: 0 });
  await claim();
  await claim({ key: 'another' });
  await claim({ accountId: randomUUID() });
  await store.keep(named, { status: 200, body: 'ä' });
  expect(await store.held(named.accountId)).toEqual({ keys: 2, bytes: 2 });
});

it('another request under the key is told apart', async () => {
  await claim();
  expect(await claim({ request: 'another' })).toEqual({ state: 'other' });
});

it('what was released is claimed anew', async () => {
  await claim();
  await store.release(named);
  expect(await claim()).toEqual({ state: 'first' });
});

it('a process that died is not waited for', async () => {
  await claim({ apiId: 'dead' });
  expect(await claim()).toEqual({ state: 'first' });
  expect(await claim()).toEqual({ state: 'running' });
});

it('a process that comes back late changes nothing', async () => {
  await claim({ apiId: 'dead' });
  await claim();
  await store.keep({ ...named, apiId: 'dead' }, answer);
  await store.release({ ...named, apiId: 'dead' });
  expect(await claim()).toEqual({ state: 'running' });
});

it('an answer that takes longer than any is given up on', async () => {
  await claim();
  await age('2 minutes');
  expect(await claim()).toEqual({ state: 'first' });
});

it('an answer is kept for a day, and then removed', async () => {
  await claim();
  await store.keep(named, answer);
  await age('23 hours');
  expect(await claim()).toEqual({ state: 'answered', ...answer });
  await age('1 hour');
  expect(await claim()).toEqual({ state: 'first' });
  await store.keep(named, answer);
  await age('24 hours');
  expect(await store.removeOld(1_000)).toBeGreaterThan(0);
  expect(await database.client.idempotentAnswer.count({ where: { accountId: named.accountId } })).toBe(0);
});
