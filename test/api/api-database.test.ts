import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ApiDatabase, toApiDatabase } from '../../src/api/api-database.js';
import type { UsageEntry } from '../../src/api/usage-store.js';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createKey, hashKey } from '../../src/platform/keys.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

let server: TestDatabase;
let database: Database;
let subject: ApiDatabase;
let key: Awaited<ReturnType<typeof createKey>>;
let accountId: string;
beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase(server.url, { logger: pino({ level: 'silent' }) });
  subject = toApiDatabase(database);
});
beforeEach(async () => {
  key = await createKey({ database, accountName: randomUUID(), keyName: 'test' });
  ({ accountId } = await database.client.apiKey.findUniqueOrThrow({ where: { id: key.id } }));
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

describe('keys', () => {
  it('are found by their hash, with the state of their account', async () => {
    expect(await subject.keys.find(hashKey(key.secret))).toEqual({
      id: key.id,
      accountId,
      sha256: hashKey(key.secret),
      expiresAt: null,
      revokedAt: null,
      account: { disabled: false, verified: false },
    });
  });

  it('that do not exist are not found', async () => {
    expect(await subject.keys.find(hashKey(`${key.secret}x`))).toBeUndefined();
  });

  it('remember when they were used', async () => {
    const at = new Date('2026-11-21T10:00:00Z');
    await subject.keys.touch(key.id, at);
    const { lastUsedAt } = await database.client.apiKey.findUniqueOrThrow({ where: { id: key.id } });
    expect(lastUsedAt).toEqual(at);
  });

  it('that were deleted meanwhile are not missed', async () => {
    await expect(subject.keys.touch(randomUUID(), new Date())).resolves.toBeUndefined();
  });
});

describe('usage', () => {
  const entry = (id: string): UsageEntry => ({
    id,
    accountId,
    keyId: key.id,
    model: 'm',
    operation: 'chat',
    endUser: 'someone',
    promptTokens: 9,
    completionTokens: 2,
    cachedTokens: 1,
    finishReason: 'stop',
    status: 200,
    queueMs: 1.5,
    firstTokenMs: null,
    totalMs: 20.25,
    createdAt: new Date('2026-11-21T10:00:00Z'),
  });

  it('is stored as it is', async () => {
    await subject.usage.add([entry('one')]);
    expect(await database.client.usageRecord.findUnique({ where: { id: 'one' } })).toEqual(entry('one'));
  });

  it('is stored once when it is written again', async () => {
    await subject.usage.add([entry('a')]);
    await subject.usage.add([entry('a'), entry('b')]);
    expect(await database.client.usageRecord.count({ where: { id: { in: ['a', 'b'] } } })).toBe(2);
  });
});
