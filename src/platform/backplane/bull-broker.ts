import type { WorkerOptions } from 'bullmq';
import { queueName, taskQueueName } from '../../contract/names.js';
import type { Logger } from '../logger.js';
import type { ConsumeOptions, JobConsumer, JobHandler, TaskHandler } from './backplane.js';
import { BullConsumer, type Processor, type TextWorker, workerOptions } from './bull-consumer.js';
import { BullQueue, type TextQueue } from './bull-queue.js';
import { BullTasks, startTaskConsumer, taskWorkerOptions } from './bull-tasks.js';

/** Nobody reads the events of a queue, and every call would add to them. */
export const noEvents = { events: { maxLen: 0 } };

/** What is used of a BullMQ queue; its type there depends on the server. */
type OpenedQueue = TextQueue & { on(event: 'error', listener: (error: Error) => void): unknown };

/** How one kind of server is reached. */
export interface BullServer {
  openQueue(name: string): OpenedQueue;
  /** A connection for one worker alone; of `sessions` at most, where the server has sessions. */
  connectWorker(options: { sessions: number }): WorkerConnection;
}

export interface WorkerConnection {
  open(name: string, process: Processor, options: Omit<WorkerOptions, 'connection'>): TextWorker;
  disconnect(): Promise<void>;
}

/** The queues and consumers of one backplane: each queue is opened once, and all are closed together. */
export class BullBroker {
  readonly #server: BullServer;
  readonly #logger: Logger;
  readonly #queues = new Map<string, BullQueue>();
  readonly #tasks = new Map<string, BullTasks>();
  readonly #consumers = new Set<JobConsumer>();

  constructor({ server, logger }: { server: BullServer; logger: Logger }) {
    this.#server = server;
    this.#logger = logger;
  }

  queue(modelId: string): BullQueue {
    return known(this.#queues, modelId, () => new BullQueue(() => this.#open(queueName(modelId))));
  }

  tasks(name: string): BullTasks {
    return known(this.#tasks, name, () => new BullTasks(() => this.#open(taskQueueName(name))));
  }

  async consume(modelId: string, handler: JobHandler, options: ConsumeOptions): Promise<JobConsumer> {
    const { open, disconnect } = this.#server.connectWorker({ sessions: 5 });
    const consumer = await BullConsumer.start({
      open: (process) => open(queueName(modelId), process, workerOptions(options)),
      disconnect,
      handler,
      options,
      logger: this.#logger,
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  async work(name: string, handler: TaskHandler, options: ConsumeOptions): Promise<JobConsumer> {
    const { open, disconnect } = this.#server.connectWorker({ sessions: 3 });
    const consumer = await startTaskConsumer({
      open: (process) => open(taskQueueName(name), process, taskWorkerOptions(options)),
      disconnect,
      handler,
      logger: this.#logger,
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.close({ drainMs: 0 })));
    await Promise.all([...this.#queues.values(), ...this.#tasks.values()].map((queue) => queue.close()));
  }

  #open(name: string): OpenedQueue {
    const opened = this.#server.openQueue(name);
    opened.on('error', (error) => this.#logger.debug({ err: error }, 'queue error'));
    return opened;
  }
}

function known<T>(all: Map<string, T>, name: string, make: () => T): T {
  const value = all.get(name) ?? make();
  all.set(name, value);
  return value;
}
