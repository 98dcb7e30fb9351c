import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** A server that runs in a process of its own and answers. */
export interface Server {
  readonly url: string;
  readonly key?: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** How to start a server on a port of this machine. */
export interface ServerKind {
  readonly name: string;
  /** The model's name there. */
  readonly model: string;
  /** Fields that only this server needs in a request. */
  readonly extra: Readonly<Record<string, unknown>>;
  start(port: number, signal: AbortSignal): Promise<Server>;
}

/**
 * Starts a program and resolves when `healthPath` answers with 200.
 * @throws Error with the end of what the program wrote when it ends before that.
 */
export async function startServer(options: {
  readonly command: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly port: number;
  readonly healthPath: string;
  readonly logFile: string;
  readonly signal: AbortSignal;
}): Promise<Server> {
  const { command, environment, port, healthPath, logFile, signal } = options;
  const log = openSync(logFile, 'w');
  const child = spawn(command[0]!, command.slice(1), { env: environment, stdio: ['ignore', log, log] });
  const failure = once(child, 'exit').catch((error: unknown) => error);
  const url = `http://127.0.0.1:${port}`;
  try {
    while (!(await answers(`${url}${healthPath}`))) {
      const ended = await Promise.race([failure, delay(100, undefined, { signal })]);
      if (ended !== undefined) {
        throw new Error(`${command.join(' ')} ended: ${(await readFile(logFile, 'utf8')).slice(-2000)}`);
      }
    }
  } catch (error) {
    await stop(child);
    throw error;
  }
  return { url, pid: child.pid!, stop: () => stop(child) };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    // Nothing listens yet.
    return false;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}
