import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { StartedTestContainer } from 'testcontainers';
import { inject } from 'vitest';
import { freePort } from './free-port.js';
import type { RedisLocation } from './redis-location.js';
import { makeTempFolder } from './temp-folder.js';

export interface RedisServer {
  readonly url: string;
  /** False for a server that others use too: it is never stopped. */
  readonly restartable: boolean;
  /** As an operator stops it: it keeps its data for `start`, except in a container. */
  stop(): Promise<void>;
  /** As a crash stops it. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** Stops it for good. */
  close(): Promise<void>;
}

/** A Redis of the test's own, except where REDIS_URL names one that all tests share. */
export async function startRedis(): Promise<RedisServer> {
  const location: RedisLocation = inject('redis');
  switch (location.kind) {
    case 'shared':
      return sharedServer(location.url);
    case 'program':
      return startProgram(location.path);
    case 'container':
      return startContainer();
    case 'none':
      throw new Error(`There is no Redis: ${location.reason}`);
    default:
      return location satisfies never;
  }
}

function sharedServer(url: string): RedisServer {
  const never = async () => {
    throw new Error('The Redis of REDIS_URL is not stopped by tests.');
  };
  return { url, restartable: false, stop: never, kill: never, start: never, close: async () => {} };
}

async function startProgram(path: string): Promise<RedisServer> {
  const folder = await makeTempFolder('redis');
  const port = await freePort();
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir: folder.path,
    // A server that is stopped and started again has its data again.
    appendonly: 'yes',
    save: '',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  let child: ChildProcess | undefined;
  // A test process that is ended by force must not leave its servers.
  const killOnExit = () => child?.kill('SIGKILL');
  process.on('exit', killOnExit);

  const start = async () => {
    const started = spawn(path, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    child = started;
    await new Promise<void>((resolve, reject) => {
      started.once('error', reject);
      started.once('exit', () => reject(new Error(`${path} did not start on port ${port}`)));
      createInterface({ input: started.stdout }).on('line', (line) => {
        if (line.includes('Ready to accept connections')) resolve();
      });
    });
  };
  const end = async (signal: NodeJS.Signals) => {
    if (child?.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, 'exit');
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    restartable: true,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    start,
    close: async () => {
      await end('SIGKILL');
      process.off('exit', killOnExit);
      await folder.remove();
    },
  };
}

async function startContainer(): Promise<RedisServer> {
  const { GenericContainer, Wait } = await import('testcontainers');
  const host = await freePort();
  const definition = new GenericContainer('redis:8-alpine')
    .withExposedPorts({ container: 6379, host })
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'));
  let container: StartedTestContainer | undefined;
  const start = async () => {
    container = await definition.start();
  };
  const stop = async () => {
    await container?.stop({ timeout: 0 });
    container = undefined;
  };
  await start();
  return { url: `redis://127.0.0.1:${host}`, restartable: true, stop, kill: stop, start, close: stop };
}
