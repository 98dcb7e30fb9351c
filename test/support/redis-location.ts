import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Where the Redis of the tests comes from. */
export type RedisLocation =
  | { kind: 'shared'; url: string }
  | { kind: 'program'; path: string }
  | { kind: 'container' }
  | { kind: 'none'; reason: string };

/**
 * REDIS_URL, else a server program, else a container, else, as root on a Debian system, the distribution's
 * package.
 */
export async function locateRedis(): Promise<RedisLocation> {
  if (process.env.REDIS_URL) return { kind: 'shared', url: process.env.REDIS_URL };
  const path = await findProgram();
  if (path) return { kind: 'program', path };
  if (await succeeds('docker', ['info'])) return { kind: 'container' };
  const missing =
    'REDIS_URL is not set, there is no redis-server or valkey-server, and Docker does not answer';
  if (process.getuid?.() !== 0 || !(await succeeds('apt-get', ['--version']))) {
    return { kind: 'none', reason: missing };
  }
  console.log(`${missing}: installing it with apt-get install -y redis-server`);
  return install();
}

async function install(): Promise<RedisLocation> {
  try {
    // The package would start a system service; at run level 1 it does not.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    await run('apt-get', ['update'], { env });
    await run('apt-get', ['install', '-y', 'redis-server'], { env });
    const path = await findProgram();
    return path ? { kind: 'program', path } : { kind: 'none', reason: 'the package has no redis-server' };
  } catch (error) {
    return { kind: 'none', reason: `apt-get failed: ${(error as Error).message}` };
  }
}

async function findProgram(): Promise<string | undefined> {
  for (const name of ['redis-server', 'valkey-server']) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
      const path = join(folder, name);
      if (
        await access(path, constants.X_OK).then(
          () => true,
          () => false,
        )
      )
        return path;
    }
  }
  return undefined;
}

async function succeeds(command: string, args: string[]): Promise<boolean> {
  return run(command, args, { timeout: 10_000 }).then(
    () => true,
    () => false,
  );
}
