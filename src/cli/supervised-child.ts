import { type ChildProcess, fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import { z } from 'zod';

/** A process to run. It says `{type: 'ready'}` over IPC, and exits when IPC is cut: its parent has died. */
export interface ChildSpecification {
  /** What people call it. */
  readonly name: string;
  /** The JavaScript file it runs. */
  readonly entry: string;
  readonly args: readonly string[];
  /** Variables beside those of this process. */
  readonly env: NodeJS.ProcessEnv;
}

export interface ChildExit {
  /** In words: `was ended by SIGKILL`, or `exited with code 1: there is no such file` before it was ready. */
  readonly how: string;
  /** From being ready to the exit; 0 when it never was. */
  readonly readyForMs: number;
}

const readyMessageSchema = z.object({ type: z.literal('ready') });
const logLineSchema = z.object({ msg: z.string() });

/** One run of a child process. */
export class SupervisedChild {
  readonly #process: ChildProcess;
  /** Resolves when the child says that it is ready; rejects with the reason when it exits before. */
  readonly ready: Promise<void>;
  /** Resolves when the process is gone and its output has been read. */
  readonly exited: Promise<ChildExit>;

  /** `onLine` receives what the child writes to standard error, except the reason of a failed start. */
  constructor({ name, entry, args, env }: ChildSpecification, onLine: (line: string) => void) {
    // A session of its own: Ctrl-C in a terminal reaches only the parent, which ends everything in order.
    const child = fork(entry, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      detached: true,
    });
    this.#process = child;

    // Until the child is ready its latest line may be its last, and then says why.
    let latest = '';
    let readyAt: number | undefined;
    createInterface({ input: child.stderr! }).on('line', (line) => {
      if (readyAt === undefined && latest !== '') onLine(latest);
      if (readyAt === undefined) latest = line;
      else onLine(line);
    });

    this.exited = new Promise((resolve) => {
      const leave = (how: string) => {
        const readyForMs = readyAt === undefined ? 0 : performance.now() - readyAt;
        resolve({ how: readyAt === undefined ? how + reason(latest) : how, readyForMs });
      };
      // A process that could not be started has no exit.
      child.once('error', (error) => child.pid === undefined && leave(`cannot be started: ${error.message}`));
      child.once('close', (code, signal) =>
        leave(signal === null ? `exited with code ${code}` : `was ended by ${signal}`),
      );
    });
    this.ready = new Promise((resolve, reject) => {
      child.on('message', (message) => {
        if (!readyMessageSchema.safeParse(message).success) return;
        readyAt = performance.now();
        if (latest !== '') onLine(latest);
        resolve();
      });
      void this.exited.then(({ how }) => reject(new Error(`${name} ${how}`)));
    });
  }

  /**
   * Asks the process to exit, and kills it when it has not after `graceMs`.
   * @returns Whether it did as it was asked.
   */
  async stop(graceMs: number): Promise<boolean> {
    let obeyed = true;
    this.#process.kill('SIGTERM');
    const deadline = setTimeout(() => {
      obeyed = false;
      this.kill();
    }, graceMs);
    await this.exited;
    clearTimeout(deadline);
    return obeyed;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }
}

/** What the last line of a log says, a structured one or not. */
function reason(line: string): string {
  if (line === '') return '';
  try {
    return `: ${logLineSchema.parse(JSON.parse(line)).msg}`;
  } catch {
    return `: ${line}`;
  }
}
