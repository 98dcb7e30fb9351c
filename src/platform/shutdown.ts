import type { Logger } from './logger.js';

interface Closer {
  readonly name: string;
  readonly close: () => unknown;
}

/** What of `process` a shutdown touches. */
export type ShutdownProcess = Pick<NodeJS.Process, 'on' | 'off' | 'exit' | 'connected'>;

const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Ends a process in order. Whatever is opened registers how it is closed, and is closed before what it was opened
 * with: last in, first out. It begins with SIGINT, SIGTERM, the end of the parent that forked this process, or
 * `begin`, and the process exits when all is closed or the deadline has passed. A second signal exits at once; in a
 * forked process it is the parent that decides so, since Ctrl-C in a terminal reaches both, and by leaving.
 */
export class Shutdown {
  readonly #closers: Closer[] = [];
  readonly #logger: Logger;
  readonly #deadlineMs: number;
  readonly #process: ShutdownProcess;
  readonly #forked: boolean;
  readonly #started = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: { logger: Logger; deadlineMs: number; process?: ShutdownProcess }) {
    this.#logger = options.logger;
    this.#deadlineMs = options.deadlineMs;
    this.#process = options.process ?? process;
    for (const signal of signals) this.#process.on(signal, this.#onSignal);
    this.#forked = this.#process.connected === true;
    if (this.#forked) this.#process.on('disconnect', this.#onDisconnect);
  }

  /** Aborts when the shutdown begins: what is still starting can stop. */
  get signal(): AbortSignal {
    return this.#started.signal;
  }

  /** Registers a closer; one that comes after the beginning runs at once. */
  add(name: string, close: () => unknown): void {
    if (this.signal.aborted) void this.#close({ name, close });
    else this.#closers.push({ name, close });
  }

  /** Closes everything and exits with `exitCode`. The first call decides. */
  begin(reason: string, exitCode = 0): Promise<void> {
    this.#running ??= this.#run(reason, exitCode);
    return this.#running;
  }

  readonly #onSignal = (signal: NodeJS.Signals) => {
    if (!this.#running) void this.begin(signal);
    else if (!this.#forked) this.#process.exit(1);
  };

  readonly #onDisconnect = () => {
    if (!this.#running) void this.begin('the parent process has gone');
    else this.#process.exit(1);
  };

  async #run(reason: string, exitCode: number): Promise<void> {
    this.#logger.info(`shutting down: ${reason}`);
    this.#started.abort(new Error(`shutting down: ${reason}`));
    let closing = '';
    const deadline = setTimeout(() => {
      this.#logger.error(`closing ${closing} takes longer than ${this.#deadlineMs} ms; exiting without it`);
      this.#process.exit(1);
    }, this.#deadlineMs);
    for (let closer = this.#closers.pop(); closer; closer = this.#closers.pop()) {
      closing = closer.name;
      await this.#close(closer);
    }
    clearTimeout(deadline);
    this.#process.exit(exitCode);
  }

  async #close({ name, close }: Closer): Promise<void> {
    try {
      await close();
    } catch (error) {
      this.#logger.error({ err: error }, `closing ${name} failed`);
    }
  }
}
