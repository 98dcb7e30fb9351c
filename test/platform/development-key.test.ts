import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { developmentKeyPath, ensureDevelopmentKey } from '../../src/platform/development-key.js';
import { hashKey, listKeys, revokeKey } from '../../src/platform/keys.js';
import { createLogger } from '../../src/platform/logger.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { makeTempFolder, type TempFolder } from '../support/temp-folder.js';

let testDatabase: TestDatabase;
let database: Database;
let folder: TempFolder;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase(testDatabase.url, { logger: createLogger({ level: 'silent', name: 'test' }) });
  folder = await makeTempFolder('key');
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
  await folder.remove();
});

const ensure = () => ensureDevelopmentKey({ database, dataDir: folder.path });
const read = async () => (await readFile(developmentKeyPath(folder.path), 'utf8')).trim();

test('the first start writes a key of the account development for its owner alone', async () => {
  expect(await ensure()).toEqual({ path: developmentKeyPath(folder.path), created: true });
  const row = await database.client.apiKey.findUniqueOrThrow({
    where: { sha256: hashKey(await read()) },
    include: { account: true },
  });
  expect(row.account.name).toBe('development');
  expect((await stat(developmentKeyPath(folder.path))).mode & 0o777).toBe(0o600);
  expect(await readdir(folder.path)).toEqual(['dev-key']);
});

test('the audit log says who made it, and nothing of the key itself', async () => {
  await ensure();
  const entries = await database.client.auditEntry.findMany({ orderBy: { id: 'asc' } });
  expect(entries).toMatchObject([
    { actor: 'system', action: 'account.create', after: { name: 'development' } },
    { actor: 'system', action: 'key.create', after: { account: 'development', name: 'first start' } },
  ]);
  expect(JSON.stringify(entries)).not.toContain(await read());
});

test('a later start keeps a key that works', async () => {
  await ensure();
  const first = await read();
  expect(await ensure()).toMatchObject({ created: false });
  expect(await read()).toBe(first);
  expect(await listKeys(database)).toHaveLength(1);
});

test.each<[string, () => Promise<unknown>]>([
  ['is of another database', () => writeFile(developmentKeyPath(folder.path), 'sk-of-another-database\n')],
  ['was cut short', () => writeFile(developmentKeyPath(folder.path), '')],
  ['was revoked', async () => revokeKey(database, (await listKeys(database))[0]?.id ?? '')],
  ['has expired', () => database.client.apiKey.updateMany({ data: { expiresAt: new Date(0) } })],
])('a key that %s is replaced', async (_title, spoil) => {
  await ensure();
  const first = await read();
  await spoil();
  expect(await ensure()).toMatchObject({ created: true });
  expect(await read()).not.toBe(first);
  expect(await ensure()).toMatchObject({ created: false });
});
