// `npm run migrate:create -- NAME`: writes the migration that takes a database with every migration so far to what
// prisma/schema.prisma says. The database is an embedded one that is thrown away.
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../dist/platform/database/embedded-postgres.js';
import { migrate } from '../dist/platform/database/migrate.js';
import { diffFromSchema } from '../dist/platform/database/schema-diff.js';
import { createLogger } from '../dist/platform/logger.js';

const name = process.argv[2];
if (!name || !/^[a-z0-9_]+$/.test(name)) {
  console.error('usage: npm run migrate:create -- NAME   (lower case letters, digits and _)');
  process.exit(2);
}

const prisma = new URL('../prisma/', import.meta.url);
const dataDir = await mkdtemp(join(tmpdir(), 'headrace-migration-'));
// As root, Postgres runs as another user, who must be able to enter.
await chmod(dataDir, 0o755);
const logger = createLogger({ level: 'warn', name: 'migration' });
const server = await startEmbeddedPostgres({ dataDir, logger, durable: false });
try {
  await migrate(server.url);
  const sql = await diffFromSchema(server.url, await readFile(new URL('schema.prisma', prisma), 'utf8'));
  if (sql === '') {
    console.log('The migrations already say what schema.prisma says.');
  } else {
    const stamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
    const folder = new URL(`migrations/${stamp}_${name}/`, prisma);
    await mkdir(folder);
    await writeFile(new URL('migration.sql', folder), sql);
    console.log(`prisma/migrations/${stamp}_${name}/migration.sql`);
  }
} finally {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
}
