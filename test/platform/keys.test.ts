import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createKey, hashKey, listKeys, revokeKey } from '../../src/platform/keys.js';
import { createLogger } from '../../src/platform/logger.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

let testDatabase: TestDatabase;
let database: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase(testDatabase.url, { logger: createLogger({ level: 'silent', name: 'test' }) });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

test('a key is sk- and 48 letters and digits', async () => {
  const { secret } = await createKey({ database, accountName: 'shape', keyName: 'k' });
  expect(secret).toMatch(/^sk-[0-9A-Za-z]{48}$/);
});

test('keys made at once for a new account all come about, each different', async () => {
  const names = ['a', 'b', 'c', 'd'];
  const keys = await Promise.all(
    names.map((keyName) => createKey({ database, accountName: 'at once', keyName })),
  );
  expect(new Set(keys.map(({ secret }) => secret)).size).toBe(names.length);
});

test('only the SHA-256 and the first characters of a key are stored', async () => {
  const { id, secret } = await createKey({ database, accountName: 'stored', keyName: 'k' });
  const row = await database.client.apiKey.findUniqueOrThrow({ where: { id } });
  expect(row.sha256).toBe(createHash('sha256').update(secret).digest('hex'));
  expect(row.sha256).toBe(hashKey(secret));
  expect(secret.startsWith(row.prefix)).toBe(true);
  expect(row.prefix.length).toBeLessThanOrEqual(10);
});

test('keys of one name of account belong to one account', async () => {
  await createKey({ database, accountName: 'team', keyName: 'first' });
  await createKey({ database, accountName: 'team', keyName: 'second' });
  expect(await database.client.account.count({ where: { name: 'team' } })).toBe(1);
  const listed = await listKeys(database);
  expect(listed.filter(({ accountName }) => accountName === 'team').map(({ name }) => name)).toEqual([
    'first',
    'second',
  ]);
});

test('a list never holds a secret or its hash', async () => {
  const { secret } = await createKey({ database, accountName: 'list', keyName: 'k' });
  const text = JSON.stringify(await listKeys(database));
  expect(text).not.toContain(secret);
  expect(text).not.toContain(hashKey(secret));
});

test.each(['id', 'prefix'] as const)('a key is revoked by its %s, once and for all', async (by) => {
  const key = await createKey({ database, accountName: 'revoke', keyName: by });
  const revoked = await revokeKey(database, key[by]);
  expect(revoked).toMatchObject({ id: key.id, revokedAt: expect.any(Date) });
  expect(await revokeKey(database, key[by])).toEqual(revoked);
});

test('revoking what is no key says so', async () => {
  expect(await revokeKey(database, 'sk-nothing')).toBeUndefined();
});
