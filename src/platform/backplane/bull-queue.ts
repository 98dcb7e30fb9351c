import type { JobsOptions, Queue } from 'bullmq';
import type { Job } from '../../contract/job.js';
import { abortable } from '../abortable.js';
import type { JobQueue } from './backplane.js';

/** A client waits for whoever calls the queue: past this the server counts as away. */
const operationTimeoutMs = 5_000;

/** BullMQ takes jobs without a priority first, so the plain ones are the interactive ones. */
const batchPriority = 1;

/** What is used of a BullMQ queue, the same on every server. */
export type TextQueue = Pick<
  Queue,
  'remove' | 'getJobState' | 'getJobCountByTypes' | 'waitUntilReady' | 'close'
> & {
  add(name: string, data: string, options: JobsOptions): Promise<unknown>;
};

/** The producer's side of a BullMQ queue, on whichever server `open` connects it to. */
export class BullQueue implements JobQueue {
  readonly #open: () => TextQueue;
  #queue: TextQueue | undefined;

  constructor(open: () => TextQueue) {
    this.#open = open;
  }

  add(job: Job): Promise<void> {
    return this.#run(async (queue) => {
      // Text within text: Postgres' jsonb refuses U+0000 and lone surrogates, which a client may well send.
      await queue.add('request', JSON.stringify(job), {
        jobId: job.id,
        ...(job.priority === 'batch' ? { priority: batchPriority } : {}),
      });
    });
  }

  remove(jobId: string): Promise<boolean> {
    return this.#run(async (queue) => {
      // BullMQ says that it removed a job that never was, but leaves a running one, which is locked, alone.
      const state = stateOf(await queue.getJobState(jobId));
      return state === 'waiting' && (await queue.remove(jobId)) === 1;
    });
  }

  state(jobId: string): Promise<'waiting' | 'active' | 'gone'> {
    return this.#run(async (queue) => stateOf(await queue.getJobState(jobId)));
  }

  depth(): Promise<number> {
    return this.#run((queue) => queue.getJobCountByTypes('waiting', 'prioritized'));
  }

  async close(): Promise<void> {
    await this.#queue?.close();
  }

  async #run<T>(operation: (queue: TextQueue) => Promise<T>): Promise<T> {
    const signal = AbortSignal.timeout(operationTimeoutMs);
    try {
      const queue = await this.#ready(signal);
      return await abortable(operation(queue), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new Error(`the queue did not answer within ${operationTimeoutMs} ms`, { cause: error });
    }
  }

  /** A queue whose first contact with the server failed stays failed, so the next call opens another. */
  async #ready(signal: AbortSignal): Promise<TextQueue> {
    this.#queue ??= this.#open();
    const queue = this.#queue;
    try {
      await abortable(queue.waitUntilReady(), signal);
      return queue;
    } catch (error) {
      if (this.#queue === queue && !signal.aborted) {
        this.#queue = undefined;
        void queue.close().catch(() => {});
      }
      throw error;
    }
  }
}

function stateOf(state: string): 'waiting' | 'active' | 'gone' {
  if (state === 'waiting' || state === 'prioritized') return 'waiting';
  return state === 'active' ? 'active' : 'gone';
}
