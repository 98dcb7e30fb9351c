import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, inject } from 'vitest';
import type { Backplane } from '../../src/platform/backplane/backplane.js';
import { openBackplane } from '../../src/platform/backplane/open-backplane.js';
import { startEmbeddedPostgres } from '../../src/platform/database/embedded-postgres.js';
import { createLogger, type Logger } from '../../src/platform/logger.js';
import { createTestDatabase } from './postgres.js';
import { startRedis } from './redis.js';
import { makeTempFolder } from './temp-folder.js';

export type BackplaneKind = Backplane['kind'];

/** Where a process finds its servers: the arguments of `openBackplane`, and what goes to a child's environment. */
export interface BackplaneSettings {
  readonly redisUrl: string | undefined;
  readonly databaseUrl: string;
}

/** What a suite gets to work with on either kind of backplane. */
export interface BackplaneKit {
  readonly kind: BackplaneKind;
  /** Known from `beforeAll` on. The database is migrated. */
  readonly settings: BackplaneSettings;
  /** Opens a backplane that is closed after the test. */
  open(logger?: Logger): Promise<Backplane>;
}

/** A server of the test's own behind a backplane, to be stopped and started again. */
export interface OwnServer {
  readonly settings: BackplaneSettings;
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Runs a suite on Redis and on Postgres. Without a Redis its half is skipped; the run says why. */
export function describeBackplanes(title: string, suite: (kit: BackplaneKit) => void): void {
  for (const kind of ['redis', 'postgres'] as const) {
    const unavailable = kind === 'redis' && inject('redis').kind === 'none';
    describe.skipIf(unavailable)(`${title} on ${kind}`, () => {
      let settings: BackplaneSettings | undefined;
      let release = async () => {};
      const opened: Backplane[] = [];
      beforeAll(async () => {
        const database = await createTestDatabase();
        const redis = kind === 'redis' ? await startRedis() : undefined;
        settings = { databaseUrl: database.url, redisUrl: redis?.url };
        release = async () => {
          await redis?.close();
          await database.drop();
        };
      });
      afterEach(async () => {
        await Promise.all(opened.splice(0).map((backplane) => backplane.close()));
      });
      afterAll(() => release());
      suite({
        kind,
        get settings() {
          if (!settings) throw new Error('The settings are known from beforeAll on.');
          return settings;
        },
        async open(logger = createLogger({ level: 'silent', name: 'test' })) {
          const backplane = await openBackplane({ ...this.settings, logger });
          opened.push(backplane);
          return backplane;
        },
      });
    });
  }
}

/** Whether this run can stop a server of the kind: not where REDIS_URL names one that is shared. */
export function canStopServer(kind: BackplaneKind): boolean {
  return kind === 'postgres' || inject('redis').kind !== 'shared';
}

/** Starts a server of the test's own. A Redis comes with the run's Postgres, which is never stopped. */
export async function startOwnServer(kind: BackplaneKind): Promise<OwnServer> {
  return kind === 'redis' ? startOwnRedis() : startOwnPostgres();
}

async function startOwnRedis(): Promise<OwnServer> {
  const [redis, database] = await Promise.all([startRedis(), createTestDatabase()]);
  return {
    settings: { redisUrl: redis.url, databaseUrl: database.url },
    stop: redis.stop,
    start: redis.start,
    close: async () => {
      await redis.close();
      await database.drop();
    },
  };
}

async function startOwnPostgres(): Promise<OwnServer> {
  const folder = await makeTempFolder('own-postgres');
  const start = () =>
    startEmbeddedPostgres({ dataDir: folder.path, logger: pino({ level: 'silent' }), durable: false });
  let server = await start();
  return {
    settings: { redisUrl: undefined, databaseUrl: server.url },
    stop: () => server.stop(),
    start: async () => {
      const { url } = server;
      server = await start();
      if (server.url !== url) throw new Error(`Postgres came back on another port: ${server.url}`);
    },
    close: async () => {
      await server.stop();
      await folder.remove();
    },
  };
}
