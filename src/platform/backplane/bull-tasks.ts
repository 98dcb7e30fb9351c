import { setTimeout as delay } from 'node:timers/promises';
import type { Job, JobsOptions, Queue, Worker, WorkerOptions } from 'bullmq';
import { abortable, within } from '../abortable.js';
import type { Logger } from '../logger.js';
import type { ConsumeOptions, JobConsumer, TaskHandler, TaskQueue } from './backplane.js';
import { leaveNothing } from './bull-consumer.js';

const operationTimeoutMs = 5_000;
const readyTimeoutMs = 5_000;
const defaultLockMs = 30_000;

/** A bound on what never succeeds; how often a task is worth trying is for its handler to say. */
const maxRuns = 50;
/** The wait after a run that threw; it doubles up to the longest one. */
const firstFailureMs = 1_000;
const maxFailureMs = 300_000;

/** What is used of a BullMQ queue and of a worker, the same on every server. */
type IdQueue = Pick<Queue, 'waitUntilReady' | 'close'> & {
  add(name: string, data: string, options: JobsOptions): Promise<unknown>;
};
type IdWorker = Pick<Worker, 'waitUntilReady' | 'close'> & {
  on(event: 'error', listener: (error: Error) => void): unknown;
};
type Processor = (job: Job<string>) => Promise<void>;

/** Tells BullMQ to run a task again, and when. It is kept beside the task: nothing else is to be read from it. */
class Again extends Error {
  readonly retryMs: number;

  constructor(retryMs: number) {
    super('to be run again');
    this.retryMs = retryMs;
  }
}

/** The producer's side of a BullMQ queue of tasks. */
export class BullTasks implements TaskQueue {
  readonly #open: () => IdQueue;
  #queue: IdQueue | undefined;

  constructor(open: () => IdQueue) {
    this.#open = open;
  }

  async add(id: string): Promise<void> {
    const signal = AbortSignal.timeout(operationTimeoutMs);
    this.#queue ??= this.#open();
    const queue = this.#queue;
    try {
      await abortable(queue.waitUntilReady(), signal);
      await abortable(
        queue.add('task', id, {
          jobId: id,
          attempts: maxRuns,
          backoff: { type: 'as-the-handler-says' },
          ...leaveNothing,
        }),
        signal,
      );
    } catch (error) {
      // A queue whose first contact with the server failed stays failed, so the next call opens another.
      if (this.#queue === queue) this.#queue = undefined;
      void queue.close().catch(() => {});
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#queue?.close();
  }
}

/** The settings of a worker for tasks that do not depend on the server it talks to. */
export function taskWorkerOptions(options: ConsumeOptions): Omit<WorkerOptions, 'connection'> {
  return {
    concurrency: options.concurrency,
    lockDuration: options.lockMs ?? defaultLockMs,
    maxStalledCount: maxRuns,
    settings: {
      backoffStrategy: (runs, _type, error) =>
        error instanceof Again ? error.retryMs : Math.min(firstFailureMs * 2 ** (runs - 1), maxFailureMs),
    },
    ...leaveNothing,
  };
}

/** Runs a handler on the tasks of a BullMQ worker. Resolves once tasks are taken. */
export async function startTaskConsumer({
  open,
  disconnect,
  handler,
  logger,
}: {
  open: (process: Processor) => IdWorker;
  disconnect: () => Promise<void>;
  handler: TaskHandler;
  logger: Logger;
}): Promise<JobConsumer> {
  const worker = open(async (job) => {
    let again: Awaited<ReturnType<TaskHandler>>;
    try {
      again = await handler(job.data);
    } catch (error) {
      logger.error({ err: error, task: job.data }, 'a task failed');
      // Whatever it quotes stays out of the store.
      throw new Error('failed');
    }
    if (again !== undefined) throw new Again(again.retryMs);
  });
  worker.on('error', (error) => logger.debug({ err: error }, 'task worker error'));
  let closing: Promise<void> | undefined;
  const consumer: JobConsumer = {
    close: ({ drainMs }) => {
      closing ??= (async () => {
        const late = new AbortController();
        const drained = worker.close().catch(() => {});
        await Promise.race([drained, delay(drainMs, undefined, { signal: late.signal }).catch(() => {})]);
        late.abort();
        await disconnect();
      })();
      return closing;
    },
  };
  try {
    await within(worker.waitUntilReady(), { ms: readyTimeoutMs, what: 'The queue' });
    return consumer;
  } catch (error) {
    await consumer.close({ drainMs: 0 });
    throw error;
  }
}
