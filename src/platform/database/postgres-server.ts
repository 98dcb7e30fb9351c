import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { processExists } from '../data-folder-lock.js';
import type { Logger } from '../logger.js';
import type { Cluster } from './postgres-cluster.js';
import type { Owner } from './postgres-owner.js';

/** Crash recovery of a busy cluster takes a while; this is when we give up on it. */
const startTimeoutMs = 60_000;
/** A fast shutdown ends sessions and writes a checkpoint; after this an immediate one skips the checkpoint. */
const fastShutdownMs = 2_500;
/** Lines of the server's own log that go into an error message. */
const keptLogLines = 10;

export interface ServerOptions {
  readonly program: string;
  readonly owner: Owner;
  readonly cluster: Cluster;
  /** Server settings beside those that every cluster gets. */
  readonly settings: Readonly<Record<string, string>>;
  readonly logger: Logger;
}

/** A running postmaster. */
export interface PostgresServer {
  readonly exited: Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a postmaster and waits until it takes connections. It listens on the loopback address only, has a
 * session of its own, so that Ctrl-C in a terminal reaches us alone, and is stopped by a watchdog when this
 * process dies without stopping it.
 * @throws Error with the server's last words when it exits instead.
 */
export async function startServer(options: ServerOptions): Promise<PostgresServer> {
  const { cluster, owner, logger } = options;
  const settings = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...options.settings };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(options.program, ['-D', cluster.dir, '-p', String(cluster.port), ...flags], {
    ...owner,
    cwd: '/',
    env: { LC_ALL: 'C' },
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const lastLines: string[] = [];
  const ready = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    createInterface({ input: child.stderr }).on('line', (line) => {
      logger.debug({ postgres: line }, 'postgres');
      if (lastLines.push(line) > keptLogLines) lastLines.shift();
      if (line.includes('database system is ready to accept connections')) resolve();
    });
    void exited.then(() =>
      reject(new Error(`The embedded Postgres did not start:\n${lastLines.join('\n')}`)),
    );
  });
  const watchdog = watch(child, owner);
  const stop = async () => {
    await stopProcess(child, exited);
    watchdog?.kill('SIGKILL');
  };
  void exited.then(() => watchdog?.kill('SIGKILL'));
  const timeout = new AbortController();
  try {
    await Promise.race([ready, giveUp(timeout.signal)]);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    timeout.abort();
  }
  return { exited, stop };
}

async function giveUp(signal: AbortSignal): Promise<never> {
  await delay(startTimeoutMs, undefined, { signal });
  throw new Error(`The embedded Postgres was not ready within ${startTimeoutMs / 1000} seconds.`);
}

async function stopProcess(child: ChildProcess, exited: Promise<void>): Promise<void> {
  child.kill('SIGINT');
  const impatient = setTimeout(() => child.kill('SIGQUIT'), fastShutdownMs);
  await exited;
  clearTimeout(impatient);
}

/** A shell that waits for our end of its input to close, which happens however this process ends. */
function watch(child: ChildProcess, owner: Owner): ChildProcess | undefined {
  if (process.platform === 'win32' || child.pid === undefined) return undefined;
  const script = 'read -r _; kill -INT "$1"';
  const watchdog = spawn('/bin/sh', ['-c', script, 'headrace-watchdog', String(child.pid)], {
    ...owner,
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchdog.on('error', () => {});
  watchdog.unref();
  return watchdog;
}

/**
 * Clears what an earlier run left in a cluster that nobody else uses: a postmaster that outlived it is stopped,
 * and the file that names a dead one, whose id may be another process's by now, is removed.
 */
export async function clearStaleServer(cluster: Cluster, logger: Logger): Promise<void> {
  const file = join(cluster.dir, 'postmaster.pid');
  const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 0) return;
  // The watchdog of the earlier run may just be at it.
  const deadline = Date.now() + 2 * fastShutdownMs;
  for (let signalled = false; await isPostmaster(pid, cluster); await delay(50)) {
    if (!signalled) {
      logger.warn({ pid }, 'stopping the embedded Postgres that an earlier run left behind');
      process.kill(pid, 'SIGINT');
      signalled = true;
    }
    if (Date.now() > deadline) process.kill(pid, 'SIGQUIT');
  }
  await rm(file, { force: true });
}

async function isPostmaster(pid: number, cluster: Cluster): Promise<boolean> {
  return processExists(pid) && (await commandLine(pid)).includes(cluster.dir);
}

/** The arguments a process was started with; empty when it has gone. */
async function commandLine(pid: number): Promise<string> {
  if (process.platform === 'linux') return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  const { stdout } = await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }));
  return stdout;
}
