import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Job } from '../../src/contract/job.js';
import type {
  Backplane,
  Channel,
  ConsumeOptions,
  JobConsumer,
  JobHandler,
  JobQueue,
  TaskHandler,
  TaskQueue,
} from '../../src/platform/backplane/backplane.js';

/** A backplane inside one process, for tests whose subject is on one side of it. Messages arrive in a microtask. */
export class MemoryBackplane implements Backplane {
  readonly kind = 'redis';
  readonly #queues = new Map<string, MemoryQueue>();
  /** Tasks that were handed in; nobody does them. */
  readonly addedTasks: { name: string; id: string }[] = [];
  readonly #messages = new EventEmitter().setMaxListeners(0);

  readonly channel: Channel = {
    publish: async (name, message) => {
      queueMicrotask(() => this.#messages.emit(name, message));
    },
    subscribe: async (name, listener) => {
      this.#messages.on(name, listener);
      return { close: async () => void this.#messages.off(name, listener) };
    },
  };

  queue(modelId: string): MemoryQueue {
    const known = this.#queues.get(modelId) ?? new MemoryQueue();
    this.#queues.set(modelId, known);
    return known;
  }

  async consume(modelId: string, handler: JobHandler, options: ConsumeOptions): Promise<JobConsumer> {
    return this.queue(modelId).consume(handler, options.concurrency);
  }

  tasks(name: string): TaskQueue {
    return {
      add: async (id) => {
        this.addedTasks.push({ name, id });
      },
    };
  }

  async work(_name: string, _handler: TaskHandler, _options: ConsumeOptions): Promise<JobConsumer> {
    throw new Error('Tasks in memory are never done.');
  }

  async check(): Promise<void> {}

  async close(): Promise<void> {
    this.#messages.removeAllListeners();
  }
}

export class MemoryQueue implements JobQueue {
  readonly waiting: Job[] = [];
  readonly active = new Map<string, AbortController>();
  #take: (() => void) | undefined;

  async add(job: Job): Promise<void> {
    const index =
      job.priority === 'interactive' ? this.waiting.findIndex((other) => other.priority === 'batch') : -1;
    this.waiting.splice(index === -1 ? this.waiting.length : index, 0, structuredClone(job));
    this.#take?.();
  }

  async remove(jobId: string): Promise<boolean> {
    const index = this.waiting.findIndex(({ id }) => id === jobId);
    if (index !== -1) this.waiting.splice(index, 1);
    return index !== -1;
  }

  async state(jobId: string): Promise<'waiting' | 'active' | 'gone'> {
    if (this.waiting.some(({ id }) => id === jobId)) return 'waiting';
    return this.active.has(jobId) ? 'active' : 'gone';
  }

  async depth(): Promise<number> {
    return this.waiting.length;
  }

  consume(handler: JobHandler, concurrency: number): JobConsumer {
    const held = new Set<Promise<void>>();
    const take = () => {
      while (held.size < concurrency && this.waiting.length > 0) {
        const job = this.waiting.shift()!;
        const controller = new AbortController();
        this.active.set(job.id, controller);
        const run = handler({ jobId: job.id, payload: job, attempt: 1, signal: controller.signal })
          .catch(() => {})
          .finally(() => {
            this.active.delete(job.id);
            held.delete(run);
            this.#take?.();
          });
        held.add(run);
      }
    };
    this.#take = take;
    take();
    return {
      close: async ({ drainMs }) => {
        this.#take = undefined;
        const drain = new AbortController();
        const drained = Promise.allSettled(held).then(() => drain.abort());
        await Promise.race([drained, delay(drainMs, undefined, { signal: drain.signal }).catch(() => {})]);
        drain.abort();
        for (const controller of this.active.values()) controller.abort(new Error('consumer closed'));
        await Promise.allSettled(held);
      },
    };
  }
}
