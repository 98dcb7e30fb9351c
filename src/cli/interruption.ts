import { constants } from 'node:os';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type Signal = (typeof signals)[number];

/**
 * `npm start` passes on the Ctrl-C that its terminal has sent to everyone already: what comes again this soon is the
 * same wish, and not impatience.
 */
const echoMs = 300;

/** A person or the system asked the command to end. */
export class Interruption extends Error {
  override readonly name = 'Interruption';
  /** What shells expect of a process that a signal ended. */
  readonly exitCode: number;

  constructor(signal: Signal) {
    super(`Interrupted by ${signal}.`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** What of `process` an interruption touches. */
export type InterruptedProcess = Pick<NodeJS.Process, 'on' | 'off' | 'exit'>;

/**
 * Runs `work` with a signal that aborts, with an {@link Interruption}, when the process is asked to end. Asked once
 * more, the process exits at once.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { process = globalThis.process, now = () => performance.now() }: InterruptibleOptions = {},
): Promise<T> {
  const controller = new AbortController();
  let interruptedAt: number | undefined;
  const interrupt = (signal: Signal) => {
    const interruption = new Interruption(signal);
    if (interruptedAt === undefined) {
      interruptedAt = now();
      controller.abort(interruption);
    } else if (now() - interruptedAt > echoMs) {
      process.exit(interruption.exitCode);
    }
  };
  for (const signal of signals) process.on(signal, interrupt);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
  }
}

interface InterruptibleOptions {
  readonly process?: InterruptedProcess;
  /** Milliseconds that only ever grow. */
  readonly now?: () => number;
}
