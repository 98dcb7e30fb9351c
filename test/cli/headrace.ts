import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** The built command line. */
export const programPath = resolve(root, 'dist/cli/main.js');

export type Environment = Readonly<Record<string, string>>;

export interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A model of the fixtures, as a catalogue lists it. */
export function fixtureModel(id: string, task: 'chat' | 'rerank', fixture: string) {
  const path = resolve(root, 'test/fixtures', fixture);
  return { id, task, weights: 'float32', threads: 1, kvMiB: 16, sources: [{ from: 'file', path }] };
}

/** The environment of a service in a folder of its own, with two models of the fixtures: a-chat-model, a-reranker. */
export async function serveEnvironment(folder: string): Promise<Environment> {
  const models = [
    fixtureModel('a-chat-model', 'chat', 'decoder/llama-tied'),
    fixtureModel('a-reranker', 'rerank', 'encoder/bert-cross-encoder'),
  ];
  const modelsFile = join(folder, 'models.json');
  await writeFile(modelsFile, JSON.stringify({ models }));
  return {
    HEADRACE_PORT: String(await freePort()),
    HEADRACE_DATA_DIR: join(folder, 'data'),
    HEADRACE_CACHE_DIR: join(folder, 'cache'),
    HEADRACE_MODELS: modelsFile,
  };
}

/** Runs the built command line to its end, with no environment but this. */
export async function headrace(
  args: readonly string[],
  environment: Environment,
  { input = '', cwd }: { input?: string; cwd?: string } = {},
): Promise<Ended> {
  const child = launch(args, environment, cwd);
  child.stdin!.end(input);
  const [stdout, stderr] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close'),
  ]);
  return { exitCode: child.exitCode, stdout, stderr };
}

/** A running `headrace serve`. */
export class Serve {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #lines: string[] = [];
  #onLine = () => {};

  constructor(environment: Environment) {
    this.#child = launch(['serve'], environment);
    this.pid = this.#child.pid!;
    this.#ended = once(this.#child, 'close').then(() => this.#onLine());
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.#lines.push(line);
        this.#onLine();
      });
    }
  }

  /** Resolves when the service says that it is ready. */
  static async start(environment: Environment): Promise<Serve> {
    const serve = new Serve(environment);
    await serve.line(/is ready at/);
    return serve;
  }

  get output(): string {
    return this.#lines.join('\n');
  }

  /** The first line that matches, once it is there. */
  async line(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = this.#lines.find((line) => pattern.test(line));
      if (found !== undefined) return found;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
        throw new Error(`It ended without a line like ${pattern}:\n${this.output}`);
      }
      await new Promise<void>((heard) => {
        this.#onLine = heard;
      });
    }
  }

  /** The process ids of `count` workers, once they take requests. */
  async workers(count: number): Promise<number[]> {
    const pids = new Set<number>();
    while (pids.size < count) {
      const known = [...pids].map((pid) => `(?!.*"pid":${pid},)`).join('');
      const line = await this.line(new RegExp(`^${known}\\{"level".*takes requests`));
      pids.add((JSON.parse(line) as { pid: number }).pid);
    }
    return [...pids];
  }

  /** Sends a signal, where it is not too late for one, and resolves with the exit code. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal);
    await this.#ended;
    return this.#child.exitCode;
  }
}

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function launch(args: readonly string[], environment: Environment, cwd?: string): ChildProcess {
  const child = spawn(process.execPath, [programPath, ...args], {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const kill = () => child.kill('SIGKILL');
  process.on('exit', kill);
  child.once('close', () => process.off('exit', kill));
  return child;
}
