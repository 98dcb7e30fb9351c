import pg from 'pg';
import { pino } from 'pino';
import type { TestProject } from 'vitest/node';
import { PostgresBackplane } from '../../src/platform/backplane/postgres-backplane.js';
import { startEmbeddedPostgres } from '../../src/platform/database/embedded-postgres.js';
import { migrate } from '../../src/platform/database/migrate.js';
import { locateRedis, type RedisLocation } from './redis-location.js';
import { makeTempFolder } from './temp-folder.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** A Postgres that tests may create databases on, and the migrated database they are copied from. */
    postgres: { url: string; template: string };
    redis: RedisLocation;
  }
}

/** Runs once, before and after all test files: one Postgres for the whole run, and the way to a Redis. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await locateRedis();
  if (redis.kind === 'none') {
    if (process.env.CI === 'true') throw new Error(`The Redis suites cannot run: ${redis.reason}`);
    console.log(`The Redis suites are skipped: ${redis.reason}`);
  }
  project.provide('redis', redis);

  const server = await startPostgres();
  try {
    const template = `headrace_template_${process.pid}`;
    await createTemplate(server.url, template);
    project.provide('postgres', { url: server.url, template });
    return async () => {
      await execute(server.url, `DROP DATABASE ${template} WITH (FORCE)`);
      await server.stop();
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function startPostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  if (process.env.DATABASE_URL) return { url: process.env.DATABASE_URL, stop: async () => {} };
  const folder = await makeTempFolder('postgres');
  const server = await startEmbeddedPostgres({
    dataDir: folder.path,
    logger: pino({ level: 'silent' }),
    durable: false,
  });
  return {
    url: server.url,
    stop: async () => {
      await server.stop();
      await folder.remove();
    },
  };
}

/** Copying a database that has every table is quicker than migrating an empty one for each test. */
async function createTemplate(url: string, name: string): Promise<void> {
  await execute(url, `CREATE DATABASE ${name}`);
  const template = new URL(url);
  template.pathname = `/${name}`;
  await migrate(template.href);
  const backplane = await PostgresBackplane.open({ url: template.href, logger: pino({ level: 'silent' }) });
  await backplane.close();
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
