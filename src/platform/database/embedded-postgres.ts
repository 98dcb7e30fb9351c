import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { lockDataFolder } from '../data-folder-lock.js';
import type { Logger } from '../logger.js';
import { findPostgresBinaries } from './postgres-binaries.js';
import {
  type Cluster,
  clusterUser,
  isPortFree,
  moveToFreePort,
  openCluster,
  prepareHome,
  readSettings,
} from './postgres-cluster.js';
import { findOwner } from './postgres-owner.js';
import { clearStaleServer, type PostgresServer, type ServerOptions, startServer } from './postgres-server.js';

const databaseName = 'headrace';
/** Between the end of a server that was not stopped by us and its next start. */
const restartDelayMs = 1_000;

/** A session per model, API process and query pool, with room to spare; the tools of a person come on top. */
const serviceSettings = { max_connections: '200' };
/** For databases that need not outlive the machine's next crash: tests. */
const carelessSettings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };

export interface EmbeddedPostgres {
  /** Holds the password. Stays the same until `stop`. */
  readonly url: string;
  /** Ends every session and the server, and gives the data folder free. Takes 2 to 3 seconds at most. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Runs a Postgres of our own with its files under `dataDir`, creating them on first start. It is started again
 * when it dies.
 * @param options.durable False trades crash safety for speed.
 * @throws DataFolderInUseError when another process runs one from the same folder.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string;
  logger: Logger;
  durable?: boolean;
}): Promise<EmbeddedPostgres> {
  const { dataDir, logger } = options;
  const unlock = await lockDataFolder(dataDir);
  try {
    const owner = await findOwner();
    const home = await prepareHome(dataDir, owner, logger);
    const binaries = await findPostgresBinaries({ owner, copyDir: home });
    let cluster = await openCluster({ home, initdb: binaries.initdb, owner });
    await clearStaleServer(cluster, logger);
    if (!(await isPortFree(cluster.port))) cluster = await moveToFreePort(cluster);
    const settings = { ...serviceSettings, ...(options.durable === false ? carelessSettings : {}) };
    const running = await keepRunning({ program: binaries.postgres, owner, cluster, settings, logger });
    try {
      await createDatabase(cluster);
    } catch (error) {
      await running.stop();
      throw error;
    }
    let stopping: Promise<void> | undefined;
    return {
      url: urlOf(cluster, databaseName),
      stop: () => {
        stopping ??= running.stop().then(unlock);
        return stopping;
      },
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

/**
 * The URL of the Postgres that another process runs from `dataDir`. It holds the password.
 * @throws Error when there never was one.
 */
export async function locateEmbeddedPostgres(options: { dataDir: string; logger: Logger }): Promise<string> {
  const home = await prepareHome(options.dataDir, await findOwner(), options.logger);
  return urlOf(await readSettings(home), databaseName);
}

async function keepRunning(options: ServerOptions): Promise<{ stop(): Promise<void> }> {
  const { cluster, logger } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let server: PostgresServer | undefined = await startServer(options);
  const restart = async () => {
    logger.error('the embedded Postgres has died; starting it again');
    await delay(restartDelayMs, undefined, { signal });
    await clearStaleServer(cluster, logger);
    return startServer(options);
  };
  const supervised = (async () => {
    while (!signal.aborted) {
      await server?.exited;
      if (signal.aborted) return;
      server = await restart().catch((error) => {
        if (!signal.aborted) logger.error({ err: error }, 'the embedded Postgres cannot be started');
        return undefined;
      });
    }
    // A start was under way when the stop came.
    await server?.stop();
  })();
  return {
    stop: async () => {
      stopping.abort();
      await server?.stop();
      await supervised;
    },
  };
}

function urlOf({ port, password }: Pick<Cluster, 'port' | 'password'>, database: string): string {
  return `postgresql://${clusterUser}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}

async function createDatabase(cluster: Cluster): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf(cluster, 'postgres') });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [databaseName]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${databaseName}`);
  } finally {
    await client.end();
  }
}
