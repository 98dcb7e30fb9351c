import { constants } from 'node:os';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A person or the system asked the command to end. */
export class Interruption extends Error {
  override readonly name = 'Interruption';
  /** What shells expect of a process that a signal ended. */
  readonly exitCode: number;

  constructor(signal: (typeof signals)[number]) {
    super(`Interrupted by ${signal}.`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/**
 * Runs `work` with a signal that aborts, with an {@link Interruption}, when the process is asked to end. Asked once
 * more, `force` is called and the process ends at once.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  force: () => void = () => {},
): Promise<T> {
  const controller = new AbortController();
  const interrupt = (signal: (typeof signals)[number]) => {
    const interruption = new Interruption(signal);
    if (!controller.signal.aborted) {
      controller.abort(interruption);
      return;
    }
    force();
    process.exit(interruption.exitCode);
  };
  for (const signal of signals) process.on(signal, interrupt);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
  }
}
