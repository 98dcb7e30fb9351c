import { setTimeout as delay } from 'node:timers/promises';
import type { Job, Worker, WorkerOptions } from 'bullmq';
import { within } from '../abortable.js';
import type { Logger } from '../logger.js';
import type { ConsumeOptions, JobConsumer, JobHandler } from './backplane.js';

const defaultLockMs = 10_000;
const readyTimeoutMs = 5_000;
/** How often jobs of dead consumers are looked for; it takes two looks to be sure. */
const stalledIntervalMs = 500;
/** A handler whose signal was aborted has this long to settle before its job counts as over regardless. */
const abortGraceMs = 1_000;

/** The settings of a worker that do not depend on the server it talks to. */
export function workerOptions(options: ConsumeOptions): Omit<WorkerOptions, 'connection'> {
  return {
    concurrency: options.concurrency,
    lockDuration: options.lockMs ?? defaultLockMs,
    stalledInterval: stalledIntervalMs,
    // Given to another consumer once; a job that kills two is dropped.
    maxStalledCount: 1,
    runRetryDelay: 500,
    ...leaveNothing,
  };
}

/** Nothing of a request's text stays in the store when its job is over. */
export const leaveNothing = { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } };

/** One run of a job by this process. */
interface Hold {
  readonly jobId: string;
  readonly abandon: AbortController;
  /** Fires when the lock has not been renewed for as long as it lasts: another consumer may hold the job. */
  readonly expiry: NodeJS.Timeout;
}

/** What is used of a BullMQ worker, the same on every server. */
export type TextWorker = Pick<Worker, 'waitUntilReady' | 'close'> & {
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'locksRenewed', listener: (renewed: { jobIds: string[] }) => void): unknown;
  on(event: 'lockRenewalFailed', listener: (jobIds: string[]) => void): unknown;
};
export type Processor = (job: Job<string>) => Promise<void>;

/** Runs a handler on the jobs of a BullMQ worker. `open` makes the worker; `disconnect` cuts it off. */
export class BullConsumer implements JobConsumer {
  readonly #worker: TextWorker;
  readonly #handler: JobHandler;
  readonly #lockMs: number;
  readonly #disconnect: () => Promise<void>;
  readonly #logger: Logger;
  readonly #holds = new Set<Hold>();
  #closing: Promise<void> | undefined;

  /** Resolves once jobs are taken. @throws Error when the server cannot be reached within a few seconds. */
  static async start(options: {
    open: (process: Processor) => TextWorker;
    disconnect: () => Promise<void>;
    handler: JobHandler;
    options: ConsumeOptions;
    logger: Logger;
  }): Promise<BullConsumer> {
    const consumer = new BullConsumer(options);
    try {
      await within(consumer.#worker.waitUntilReady(), { ms: readyTimeoutMs, what: 'The queue' });
      return consumer;
    } catch (error) {
      await consumer.close({ drainMs: 0 });
      throw error;
    }
  }

  private constructor({
    open,
    disconnect,
    handler,
    options,
    logger,
  }: Parameters<typeof BullConsumer.start>[0]) {
    this.#handler = handler;
    this.#lockMs = options.lockMs ?? defaultLockMs;
    this.#disconnect = disconnect;
    this.#logger = logger;
    this.#worker = open((job) => this.#process(job));
    // The backplane reports outages; what is left are a lock that was lost and the like.
    this.#worker.on('error', (error) => logger.debug({ err: error }, 'queue worker error'));
    this.#worker.on('locksRenewed', ({ jobIds }) => {
      for (const hold of this.#holdsOf(jobIds)) hold.expiry.refresh();
    });
    this.#worker.on('lockRenewalFailed', (jobIds) => {
      for (const hold of this.#holdsOf(jobIds)) this.#lose(hold);
    });
  }

  close({ drainMs }: { drainMs: number }): Promise<void> {
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    // Takes nothing more from here on, and resolves when the last held job is over.
    const drained = this.#worker.close();
    if (!(await settlesWithin(drained, drainMs))) {
      for (const hold of this.#holds) hold.abandon.abort(new Error('the consumer is closing'));
      // The grace is for the handler, and as much again for the server to hear of the end.
      await settlesWithin(drained, 2 * abortGraceMs);
    }
    await this.#disconnect();
  }

  async #process(job: Job<string>): Promise<void> {
    const hold: Hold = {
      jobId: job.id ?? '',
      abandon: new AbortController(),
      expiry: setTimeout(() => this.#lose(hold), this.#lockMs),
    };
    this.#holds.add(hold);
    const { signal } = hold.abandon;
    try {
      const run = this.#handler({
        jobId: hold.jobId,
        payload: JSON.parse(job.data),
        attempt: job.attemptsStarted,
        signal,
      });
      await Promise.race([run, graceAfter(signal)]);
    } catch (error) {
      // Over all the same: whoever waits was told by frames. Kept out of the store with the text it may quote.
      this.#logger.error({ err: error, jobId: hold.jobId }, 'a job handler failed');
    } finally {
      clearTimeout(hold.expiry);
      this.#holds.delete(hold);
    }
  }

  #lose(hold: Hold): void {
    if (hold.abandon.signal.aborted) return;
    this.#logger.warn({ jobId: hold.jobId }, 'lost the hold on a job; another consumer may run it');
    hold.abandon.abort(new Error('the hold on the job was lost'));
  }

  #holdsOf(jobIds: readonly string[]): Hold[] {
    const wanted = new Set(jobIds);
    return [...this.#holds].filter(({ jobId }) => wanted.has(jobId));
  }
}

async function graceAfter(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await delay(abortGraceMs, undefined, { ref: false });
}

async function settlesWithin(work: Promise<void>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  const late = delay(ms, false, { signal: timer.signal }).catch(() => false);
  const settled = work.then(
    () => true,
    () => true,
  );
  const result = await Promise.race([settled, late]);
  timer.abort();
  return result;
}
