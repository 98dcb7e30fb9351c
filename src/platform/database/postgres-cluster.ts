import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import type { Logger } from '../logger.js';
import { giveTo, type Owner, reachable } from './postgres-owner.js';

/** Where root keeps clusters whose data folder the user `postgres` cannot enter, such as one under /root. */
const systemDir = '/var/lib/headrace';

const settingsSchema = z.object({ port: z.int(), password: z.string() });

/** The superuser of the cluster. */
export const clusterUser = 'headrace';

/** The files of one Postgres: `dir` is its PGDATA, `home` the folder around it with what is remembered of it. */
export interface Cluster {
  readonly home: string;
  readonly dir: string;
  readonly port: number;
  readonly password: string;
}

/** The folder for the cluster of a data folder, made where it is missing. */
export async function prepareHome(dataDir: string, owner: Owner, logger: Logger): Promise<string> {
  await mkdir(dataDir, { recursive: true });
  const resolved = await realpath(dataDir);
  let home = join(resolved, 'postgres');
  if (!(await reachable(resolved, owner))) {
    const name = createHash('sha256').update(resolved).digest('hex').slice(0, 16);
    home = join(systemDir, name);
    logger.info({ home }, `the user postgres cannot enter ${resolved}: the database is kept in ${home}`);
    await mkdir(systemDir, { recursive: true });
    await chmod(systemDir, 0o755);
  }
  await mkdir(home, { recursive: true });
  if (owner.uid !== undefined) await chmod(home, 0o755);
  return home;
}

/** Opens the cluster in `home`, creating it first where there is none. An interrupted creation leaves none. */
export async function openCluster(options: { home: string; initdb: string; owner: Owner }): Promise<Cluster> {
  const { home, initdb, owner } = options;
  const dir = join(home, 'cluster');
  if (existsSync(dir)) return { home, dir, ...(await readSettings(home)) };

  const aside = join(home, 'cluster.new');
  await rm(aside, { recursive: true, force: true });
  await mkdir(aside, { mode: 0o700 });
  await giveTo(owner, aside);
  const password = randomBytes(24).toString('base64url');
  const passwordFile = join(home, 'password.new');
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  try {
    await giveTo(owner, passwordFile);
    await runInitdb(initdb, owner, [
      `--pgdata=${aside}`,
      `--username=${clusterUser}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
    ]);
  } finally {
    await rm(passwordFile, { force: true });
  }
  const cluster = { home, dir, password, port: await freePort() };
  await rememberSettings(cluster);
  // Last: a folder of this name is a whole cluster whose settings are known.
  await rename(aside, dir);
  return cluster;
}

/** The same cluster on a port that nothing else listens on now. */
export async function moveToFreePort(cluster: Cluster): Promise<Cluster> {
  const moved = { ...cluster, port: await freePort() };
  await rememberSettings(moved);
  return moved;
}

export async function isPortFree(port: number): Promise<boolean> {
  return listenBriefly(port).then(
    () => true,
    () => false,
  );
}

const freePort = () => listenBriefly(0);

function listenBriefly(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1' }, () => {
      const { port: chosen } = server.address() as AddressInfo;
      server.close(() => resolve(chosen));
    });
  });
}

const settingsPath = (home: string) => join(home, 'settings.json');

/** What is remembered of the cluster in `home`. */
export async function readSettings(home: string): Promise<Pick<Cluster, 'port' | 'password'>> {
  try {
    return settingsSchema.parse(JSON.parse(await readFile(settingsPath(home), 'utf8')));
  } catch (error) {
    throw new Error(
      `${settingsPath(home)}, which holds the password of the embedded Postgres, cannot be read. Restore it, or remove ${home} to begin with an empty database.`,
      { cause: error },
    );
  }
}

async function rememberSettings({ home, port, password }: Cluster): Promise<void> {
  const aside = `${settingsPath(home)}.new`;
  await writeFile(aside, JSON.stringify({ port, password }), { mode: 0o600 });
  await rename(aside, settingsPath(home));
}

async function runInitdb(initdb: string, owner: Owner, args: string[]): Promise<void> {
  const child = spawn(initdb, args, {
    ...owner,
    cwd: '/',
    env: { LC_ALL: 'C' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else
        reject(
          new Error(`The embedded Postgres could not be created: ${output.trim() || `exit code ${code}`}`),
        );
    });
  });
}
