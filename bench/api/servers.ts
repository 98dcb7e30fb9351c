import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, rmSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../../src/platform/database/database.js';
import { startEmbeddedPostgres } from '../../src/platform/database/embedded-postgres.js';
import { migrate } from '../../src/platform/database/migrate.js';
import { createKey } from '../../src/platform/keys.js';
import { createLogger } from '../../src/platform/logger.js';

export const model = 'bench';

/** What the processes log, kept only until this one ends. */
const log = join(tmpdir(), `headrace-bench-${process.pid}.log`);
process.once('exit', () => rmSync(log, { force: true }));

/** The servers behind a service, and what its processes need to know of them. */
export interface Servers {
  readonly key: string;
  /** Environment variables of processes that use Redis, where there is one, and of those that use Postgres alone. */
  readonly environments: Partial<Record<'redis' | 'postgres', Readonly<Record<string, string>>>>;
  close(): Promise<void>;
}

/** A Postgres of its own that writes to disk as in production, and the Redis of REDIS_URL or of the PATH. */
export async function startServers(): Promise<Servers> {
  const folder = await mkdtemp(join(tmpdir(), 'headrace-bench-'));
  const logger = createLogger({ level: 'warn', name: 'bench' });
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), logger });
  await migrate(postgres.url);
  const database = openDatabase(postgres.url, { logger });
  const { secret } = await createKey({ database, accountName: 'bench', keyName: 'bench' });
  await database.close();
  const models = join(folder, 'models.json');
  const source = { from: 'file', path: 'nowhere' };
  await writeFile(models, JSON.stringify({ models: [{ id: model, task: 'chat', sources: [source] }] }));
  const redis = await findRedis();
  const shared = { DATABASE_URL: postgres.url, HEADRACE_MODELS: models, HEADRACE_DATA_DIR: folder };
  return {
    key: secret,
    environments: {
      postgres: shared,
      ...(redis === undefined ? {} : { redis: { ...shared, REDIS_URL: redis.url } }),
    },
    close: async () => {
      await redis?.close();
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function findRedis(): Promise<{ url: string; close(): Promise<void> } | undefined> {
  if (process.env.REDIS_URL) return { url: process.env.REDIS_URL, close: async () => {} };
  const port = await freePort();
  const child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '']);
  const ready = new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false));
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve(true);
    });
  });
  if (!(await ready)) return undefined;
  return { url: `redis://127.0.0.1:${port}`, close: () => end(child) };
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Runs a program of this folder in a process of its own, and resolves when it says that it is ready. */
export async function start(
  program: string,
  options: { args?: readonly string[]; environment: Readonly<Record<string, string>>; profile?: string },
): Promise<ChildProcess> {
  const { args = [], environment, profile } = options;
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
    execArgv: profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`],
    // As in production, every request is logged.
    stdio: ['ignore', 'ignore', openSync(log, 'w'), 'ipc'],
  });
  const ready = once(child, 'message').then(() => true);
  if (await Promise.race([ready, once(child, 'exit').then(() => false)])) return child;
  throw new Error(`${program} did not start: ${await readFile(log, 'utf8')}`);
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** Milliseconds of processor time that a process has used; not a number where the system does not tell in this way. */
export async function cpuMs({ pid }: ChildProcess): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return Number.NaN;
  // After the name of the program, which may hold anything: fields 14 and 15 of proc(5), in hundredths of a second.
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (user! + system!) * 10;
}
