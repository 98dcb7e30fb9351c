import type { Config } from '../platform/config.js';
import { DataFolderInUseError, lockDataFolder } from '../platform/data-folder-lock.js';
import { type Database, openDatabase } from '../platform/database/database.js';
import { locateEmbeddedPostgres, startEmbeddedPostgres } from '../platform/database/embedded-postgres.js';
import { migrate } from '../platform/database/migrate.js';
import type { Logger } from '../platform/logger.js';

interface Options {
  readonly config: Pick<Config, 'databaseUrl' | 'dataDir'>;
  readonly logger: Logger;
}

export interface DatabaseServer {
  readonly url: string;
  /** Stops the server if it was started here. */
  stop(): Promise<void>;
}

/**
 * The database server for a service that runs from the data folder, and from there only: the one of DATABASE_URL,
 * else the embedded one.
 * @throws DataFolderInUseError when another service runs from there.
 */
export async function openDatabaseServer({ config, logger }: Options): Promise<DatabaseServer> {
  const { databaseUrl, dataDir } = config;
  if (databaseUrl === undefined) {
    return await startEmbeddedPostgres({ dataDir, logger });
  }
  return { url: databaseUrl, stop: await lockDataFolder(dataDir) };
}

/**
 * Brings the schema up to date, which also tells whether the database can be used at all.
 * @returns The names of the migrations that were applied.
 */
export async function migrateDatabase(url: string, { databaseUrl }: Options['config']): Promise<string[]> {
  try {
    return await migrate(url);
  } catch (error) {
    if (databaseUrl === undefined) throw error;
    throw new Error(
      `DATABASE_URL: ${new URL(url).host} cannot be used (${reasonOf(error)}). ` +
        'Start that database, correct the variable, or leave it out for the embedded one.',
      { cause: error },
    );
  }
}

/**
 * Runs `work` on the database, migrated: beside a running service on the one that it uses, else on the embedded one,
 * started for the moment.
 */
export async function withDatabase<T>(
  { config, logger }: Options,
  work: (database: Database, url: string) => Promise<T>,
): Promise<T> {
  return await withDatabaseServer({ config, logger }, async (url) => {
    await migrateDatabase(url, config);
    const database = openDatabase(url, { logger, maxConnections: 1 });
    try {
      return await work(database, url);
    } finally {
      await database.close();
    }
  });
}

/** The same with nothing but the server's URL, migrated or not. */
export async function withDatabaseServer<T>(
  { config, logger }: Options,
  work: (url: string) => Promise<T>,
): Promise<T> {
  // Unlike a service, a command needs no data folder of its own.
  if (config.databaseUrl !== undefined) return await work(config.databaseUrl);
  let server: DatabaseServer;
  try {
    server = await openDatabaseServer({ config, logger });
  } catch (error) {
    if (!(error instanceof DataFolderInUseError)) throw error;
    return await work(await locateEmbeddedPostgres({ dataDir: config.dataDir, logger }));
  }
  try {
    return await work(server.url);
  } finally {
    await server.stop();
  }
}

function reasonOf(error: unknown): string {
  // A name that stands for several addresses fails with all of their errors and no text of its own.
  const { message, code } = error as NodeJS.ErrnoException;
  return message || code || String(error);
}
