import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MigrationList } from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { packagePath } from '../package-root.js';
import { noFilters, withSchemaEngine } from './schema-engine.js';

/** Any number will do as long as nothing else in the database takes it: the letters `hrmg`. */
const advisoryLockKey = 0x68_72_6d_67;

/**
 * Brings the database to the newest of prisma/migrations. Processes that start at once take turns, and all but
 * the first find nothing to do.
 *
 * @returns The names of the migrations that were applied.
 * @throws Error when the database cannot be reached or a migration fails.
 */
export async function migrate(url: string): Promise<string[]> {
  const turn = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // A connection that breaks while it waits would end the process; the queries report it too.
  turn.on('error', () => {});
  await turn.connect();
  try {
    // The engine's own lock gives up after ten seconds; this one waits. It ends with the connection.
    await turn.query('SELECT pg_advisory_lock($1)', [advisoryLockKey]);
    const migrationsList = await readMigrations(packagePath('prisma', 'migrations'));
    const { appliedMigrationNames } = await withSchemaEngine(url, (engine) =>
      engine.applyMigrations({ migrationsList, filters: noFilters }),
    );
    return appliedMigrationNames;
  } finally {
    await turn.end();
  }
}

/** Reads a folder of migrations, oldest first, as `prisma migrate` lays it out. */
export async function readMigrations(baseDir: string): Promise<MigrationList> {
  const entries = await readdir(baseDir, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const readMigration = async (name: string) => ({
    path: name,
    migrationFile: {
      path: 'migration.sql',
      content: { tag: 'ok' as const, value: await readFile(join(baseDir, name, 'migration.sql'), 'utf8') },
    },
  });
  return {
    baseDir,
    lockfile: {
      path: 'migration_lock.toml',
      content: await readFile(join(baseDir, 'migration_lock.toml'), 'utf8'),
    },
    shadowDbInitScript: '',
    migrationDirectories: await Promise.all(names.sort().map(readMigration)),
  };
}
