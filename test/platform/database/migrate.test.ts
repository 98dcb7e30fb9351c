import { readFile } from 'node:fs/promises';
import { afterEach, expect, test } from 'vitest';
import { migrate } from '../../../src/platform/database/migrate.js';
import { diffFromSchema } from '../../../src/platform/database/schema-diff.js';
import { packagePath } from '../../../src/platform/package-root.js';
import { createTestDatabase, type TestDatabase } from '../../support/postgres.js';

const databases: TestDatabase[] = [];

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase({ empty: true });
  databases.push(database);
  return database;
}

afterEach(async () => {
  await Promise.all(databases.splice(0).map((database) => database.drop()));
});

test('the migrations bring an empty database to exactly what schema.prisma says', async () => {
  const { url } = await emptyDatabase();
  const schema = await readFile(packagePath('prisma', 'schema.prisma'), 'utf8');
  expect(await diffFromSchema(url, schema)).toContain('CREATE TABLE "accounts"');
  await migrate(url);
  expect(await diffFromSchema(url, schema)).toBe('');
});

test('each migration is applied once', async () => {
  const { url } = await emptyDatabase();
  expect(await migrate(url)).not.toEqual([]);
  expect(await migrate(url)).toEqual([]);
});

test('processes that start at once take turns: one applies, the others find nothing to do', async () => {
  const { url } = await emptyDatabase();
  const applied = await Promise.all([migrate(url), migrate(url), migrate(url)]);
  expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
});

test('a column that the schema does not have shows in the diff', async () => {
  const { url } = await emptyDatabase();
  await migrate(url);
  const schema = await readFile(packagePath('prisma', 'schema.prisma'), 'utf8');
  const without = schema.replace(/^.*verified.*$/m, '');
  expect(await diffFromSchema(url, without)).toContain('DROP COLUMN "verified"');
});
