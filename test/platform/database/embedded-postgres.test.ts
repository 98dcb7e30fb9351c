import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockDataFolder } from '../../../src/platform/data-folder-lock.js';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../src/platform/database/embedded-postgres.js';
import { createLogger } from '../../../src/platform/logger.js';
import { makeTempFolder, type TempFolder } from '../../support/temp-folder.js';
import { forkTypeScript } from '../../support/typescript-child.js';

const logger = createLogger({ level: 'silent', name: 'test' });
const holder = new URL('./postgres-holder.ts', import.meta.url);

let folder: TempFolder;
let dataDir: string;
const running: EmbeddedPostgres[] = [];

beforeEach(async () => {
  folder = await makeTempFolder('embedded');
  dataDir = folder.path;
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()));
  await folder.remove();
});

async function start(): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  running.push(server);
  return server;
}

async function query<T>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  // The server may be killed under it.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function settingsFile(): Promise<string> {
  const names = await readdir(dataDir, { recursive: true });
  return join(dataDir, names.find((name) => name.endsWith('settings.json')) ?? 'none');
}

test('data, address and password stay when it is stopped and started again', async () => {
  const first = await start();
  await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS value');
  await first.stop();
  const second = await start();
  expect(second.url).toBe(first.url);
  expect(await query(second.url, 'SELECT value FROM kept')).toEqual([{ value: 42 }]);
});

test('it listens on the loopback address only, asks for the password, and keeps that to its owner', async () => {
  const { url } = await start();
  expect(await query(url, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }]);
  const wrong = new URL(url);
  wrong.password = 'wrong';
  await expect(query(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
  expect((await stat(await settingsFile())).mode & 0o777).toBe(0o600);
});

test('stopping it ends sessions that are still open', async () => {
  const server = await start();
  const client = new pg.Client({ connectionString: server.url });
  const ended = new Promise((resolve) => client.on('error', resolve));
  await client.connect();
  await server.stop();
  await ended;
});

test('a second one on the same folder says who is using it', async () => {
  await start();
  await expect(start()).rejects.toThrow(`Another Headrace (process ${process.pid}) is using ${dataDir}`);
});

test('another address is found when its own is taken', async () => {
  const first = await start();
  await first.stop();
  const { port } = new URL(first.url);
  const squatter = createServer().listen(Number(port), '127.0.0.1');
  try {
    const second = await start();
    expect(new URL(second.url).port).not.toBe(port);
    expect(await query(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  } finally {
    squatter.close();
  }
});

test('it ends with a process that is killed, and starts from what that one left', async () => {
  const child = forkTypeScript(holder, [dataDir]);
  const { url } = (await child.next()) as { url: string };
  await query(url, 'CREATE TABLE kept AS SELECT 42 AS value');
  child.process.kill('SIGKILL');
  await child.ended;
  await expect
    .poll(
      () =>
        query(url, 'SELECT 1').then(
          () => 'up',
          () => 'down',
        ),
      { timeout: 10_000 },
    )
    .toBe('down');
  const server = await start();
  expect(await query(server.url, 'SELECT value FROM kept')).toEqual([{ value: 42 }]);
});

test('it starts when both the process and the server were killed and another process has their ids', async () => {
  const first = await start();
  await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS value');
  await first.stop();
  const pidFile = join(await settingsFile(), '..', 'cluster', 'postmaster.pid');
  await writeFile(pidFile, `${process.pid}\n${dataDir}\n1\n1\n\n127.0.0.1\n       1         1\nready   \n`);
  const second = await start();
  expect(await query(second.url, 'SELECT value FROM kept')).toEqual([{ value: 42 }]);
});

test('it is started again when it dies', async () => {
  const server = await start();
  const [row] = await query<{ pid: string }>(
    server.url,
    "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid",
  );
  process.kill(Number(row?.pid), 'SIGQUIT');
  await expect
    .poll(() => query(server.url, 'SELECT 1 AS one').catch(() => 'away'), { timeout: 20_000, interval: 200 })
    .toEqual([{ one: 1 }]);
});

test('an interrupted first start leaves nothing that counts as a database', async () => {
  await mkdir(join(dataDir, 'postgres', 'cluster.new'), { recursive: true });
  await writeFile(join(dataDir, 'postgres', 'cluster.new', 'PG_VERSION'), '18\n');
  const server = await start();
  expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

test('a database whose password was lost is not thrown away', async () => {
  const server = await start();
  await server.stop();
  await rm(await settingsFile());
  await expect(start()).rejects.toThrow('holds the password of the embedded Postgres');
});

test.skipIf(process.getuid?.() !== 0)(
  'root keeps it elsewhere when the user postgres cannot enter the folder',
  async () => {
    await chmod(dataDir, 0o700);
    const server = await start();
    const [row] = await query<{ directory: string }>(server.url, 'SHOW data_directory');
    const directory = Object.values(row ?? {})[0] ?? '';
    expect(directory).toMatch(/^\/var\/lib\/headrace\/[0-9a-f]{16}\/cluster$/);
    expect(await readdir(dataDir)).toEqual(['serve.pid']);
    await server.stop();
    await rm(join(directory, '..'), { recursive: true, force: true });
  },
);

test('a data folder is free again when its holder is done or dead', async () => {
  const unlock = await lockDataFolder(dataDir);
  await expect(lockDataFolder(dataDir)).rejects.toThrow('Another Headrace');
  await unlock();
  const again = await lockDataFolder(dataDir);
  const holderFile = join(dataDir, 'serve.pid');
  const { pid, startedAt } = JSON.parse(await readFile(holderFile, 'utf8'));
  expect(pid).toBe(process.pid);
  await writeFile(holderFile, JSON.stringify({ pid, startedAt: `${startedAt}0` }));
  const third = await lockDataFolder(dataDir);
  await third();
  await again();
});
