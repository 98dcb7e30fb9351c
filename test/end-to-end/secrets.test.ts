import { Redis } from 'ioredis';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { headrace } from '../cli/headrace.js';
import { type BackplaneKit, describeBackplanes } from '../support/backplanes.js';
import { chatModel, TestService, until } from './test-service.js';

const adminToken = 'the-token-of-the-administration';
const wrongToken = 'a-wrong-token-of-the-administration';
const wrongKey = 'sk-wrong0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH';

/** Every row of every table, as text. */
async function everythingInPostgres(url: string): Promise<Map<string, string>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
       WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
    );
    const found = new Map<string, string>();
    for (const { name } of tables) {
      const { rows } = await client.query<{ row: string }>(
        `SELECT row_to_json(t)::text AS row FROM ${name} t`,
      );
      found.set(name, rows.map(({ row }) => row).join('\n'));
    }
    return found;
  } finally {
    await client.end();
  }
}

/** Every key with its value, as text. */
async function everythingInRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const found: unknown[] = [];
    for (const key of await redis.keys('*')) {
      found.push(key);
      const type = await redis.type(key);
      if (type === 'string') found.push(await redis.get(key));
      else if (type === 'hash') found.push(await redis.hgetall(key));
      else if (type === 'list') found.push(await redis.lrange(key, 0, -1));
      else if (type === 'zset') found.push(await redis.zrange(key, 0, '-1'));
      else if (type === 'set') found.push(await redis.smembers(key));
      else if (type === 'stream') found.push(await redis.xrange(key, '-', '+'));
    }
    return JSON.stringify(found);
  } finally {
    await redis.quit();
  }
}

describeBackplanes('the secrets of a service', (kit: BackplaneKit) => {
  let service: TestService;
  beforeEach(async () => {
    service = await TestService.start(kit.settings, {
      // Without a worker, what is asked stays in the queue.
      workers: [],
      environment: { HEADRACE_ADMIN_TOKEN: adminToken, HEADRACE_LOG_LEVEL: 'trace' },
    });
    await until(async () => (await fetch(`${service.url}/livez`)).ok);
  });
  afterEach(() => service.close());

  it('are in no log, no metric, no job and no table, but for what webhooks are signed with', async () => {
    const administer = async (token: string, path: string, body: object) => {
      const response = await fetch(`${service.url}/admin/v1${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return (await response.json()) as { secret: string };
    };
    const { secret: newKey } = await administer(adminToken, '/keys', { account: 'test' });
    const { secret: webhookSecret } = await administer(adminToken, '/webhooks', {
      url: 'http://127.0.0.1:1',
    });
    await administer(adminToken, '/notices', { title: 'x', text: 'x' });
    await administer(wrongToken, '/notices', { title: 'x', text: 'x' });
    const refused = await fetch(`${service.url}/v1/models`, {
      headers: { authorization: `Bearer ${wrongKey}` },
    });
    expect(refused.status).toBe(401);
    const leaving = new AbortController();
    const waiting = service.chat({ user: 'someone' }, { signal: leaving.signal });
    const backplane = await kit.open();
    await until(async () => (await backplane.queue(chatModel).depth()) === 1);

    const tables = await everythingInPostgres(kit.settings.databaseUrl);
    const seen = [
      ...[...tables].map(([name, rows]) => (name === 'public.webhooks' ? '' : rows)),
      kit.settings.redisUrl === undefined ? '' : await everythingInRedis(kit.settings.redisUrl),
      await (await fetch(`${service.url}/metrics`)).text(),
      await refused.text(),
    ].join('\n');
    leaving.abort();
    await expect(waiting).rejects.toThrow('aborted');
    await service.close();
    const { output } = service.apis[0]!.process;
    // The job was seen, and the log has something of everything.
    expect(seen).toContain('hello there');
    expect(output).toContain('a key that does not exist was sent');
    expect(output).toContain('a wrong token of the administration was sent');
    expect(tables.get('public.webhooks')).toContain(webhookSecret);
    for (const secret of [service.key, newKey, webhookSecret, adminToken, wrongToken, wrongKey]) {
      for (const text of [seen, output]) {
        expect(text).not.toContain(secret);
        expect(text).not.toContain(secret.slice(4, 20));
      }
    }
  }, 60_000);
});

describe('the secrets of the environment', () => {
  const password = 'a-secret-password';

  it.each([
    ['Postgres', { DATABASE_URL: `postgresql://someone:${password}@127.0.0.1:1/x` }],
    [
      'Redis',
      { DATABASE_URL: 'postgresql://127.0.0.1:1/x', REDIS_URL: `redis://someone:${password}@127.0.0.1:1` },
    ],
  ])(
    'are not told when %s cannot be reached',
    async (_, servers) => {
      const environment = {
        HEADRACE_LOG_LEVEL: 'trace',
        HF_TOKEN: password,
        HEADRACE_ADMIN_TOKEN: adminToken,
      };
      for (const command of [['api'], ['worker', '--model', 'SmolLM2-135M-Instruct'], ['accounts', 'list']]) {
        const { exitCode, stdout, stderr } = await headrace(command, { ...environment, ...servers });
        expect(exitCode).toBe(1);
        expect(stderr).toContain('127.0.0.1:1');
        expect(stdout + stderr).not.toContain(password);
        expect(stdout + stderr).not.toContain(adminToken);
      }
    },
    60_000,
  );
});
