import { createPostgresBackend, Queue, runMigrations, Worker } from 'bullmq';
import type pg from 'pg';
import { queueName, taskQueueName } from '../../contract/names.js';
import { abortable } from '../abortable.js';
import type { Logger } from '../logger.js';
import type { Backplane, ConsumeOptions, JobConsumer, JobHandler, TaskHandler } from './backplane.js';
import { BullConsumer, leaveNothing, workerOptions } from './bull-consumer.js';
import { BullQueue } from './bull-queue.js';
import { BullTasks, startTaskConsumer, taskWorkerOptions } from './bull-tasks.js';
import { OutageLog } from './outage-log.js';
import { PostgresChannel } from './postgres-channel.js';
import { openQueuePool } from './queue-pool.js';

/** BullMQ's Postgres backend, in the schema `bullmq` of the service's database, and LISTEN/NOTIFY. */
export class PostgresBackplane implements Backplane {
  readonly kind = 'postgres';
  readonly channel: PostgresChannel;
  readonly #url: string;
  readonly #logger: Logger;
  readonly #pool: pg.Pool;
  readonly #queues = new Map<string, BullQueue>();
  readonly #tasks = new Map<string, BullTasks>();
  readonly #consumers = new Set<JobConsumer>();
  #closing: Promise<void> | undefined;

  /** Makes the queue's tables where they are missing. @throws Error when the server does not answer in a few seconds. */
  static async open({ url, logger }: { url: string; logger: Logger }): Promise<PostgresBackplane> {
    const pool = openQueuePool(url, { maxConnections: 4 });
    try {
      const session = await pool.connect();
      try {
        await runMigrations(session);
      } finally {
        session.release();
      }
      const channel = await PostgresChannel.open({ url, logger, outage: new OutageLog('Postgres', logger) });
      return new PostgresBackplane({ url, logger, pool, channel });
    } catch (error) {
      await pool.end();
      throw error;
    }
  }

  private constructor(options: { url: string; logger: Logger; pool: pg.Pool; channel: PostgresChannel }) {
    this.#url = options.url;
    this.#logger = options.logger;
    this.#pool = options.pool;
    this.channel = options.channel;
  }

  queue(modelId: string): BullQueue {
    const known = this.#queues.get(modelId);
    if (known) return known;
    const queue = new BullQueue(() => this.#openQueue(queueName(modelId)));
    this.#queues.set(modelId, queue);
    return queue;
  }

  tasks(name: string): BullTasks {
    const known = this.#tasks.get(name);
    if (known) return known;
    const tasks = new BullTasks(() => this.#openQueue(taskQueueName(name)));
    this.#tasks.set(name, tasks);
    return tasks;
  }

  #openQueue(name: string) {
    const opened = new Queue(
      name,
      {
        connection: this.#pool,
        defaultJobOptions: leaveNothing,
        // Nobody reads the events, and every queue call would add to them.
        streams: { events: { maxLen: 0 } },
      },
      createPostgresBackend,
    );
    opened.on('error', (error) => this.#logger.debug({ err: error }, 'queue error'));
    return opened;
  }

  async consume(modelId: string, handler: JobHandler, options: ConsumeOptions): Promise<JobConsumer> {
    // One session is the worker's LISTEN, for as long as it runs.
    const pool = openQueuePool(this.#url, { maxConnections: 5 });
    const consumer = await BullConsumer.start({
      open: (process) =>
        new Worker(
          queueName(modelId),
          process,
          { ...workerOptions(options), connection: pool },
          createPostgresBackend,
        ),
      disconnect: () => pool.end(),
      handler,
      options,
      logger: this.#logger,
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  async work(name: string, handler: TaskHandler, options: ConsumeOptions): Promise<JobConsumer> {
    // One session is the worker's LISTEN, for as long as it runs.
    const pool = openQueuePool(this.#url, { maxConnections: 3 });
    const consumer = await startTaskConsumer({
      open: (process) =>
        new Worker(
          taskQueueName(name),
          process,
          { ...taskWorkerOptions(options), connection: pool },
          createPostgresBackend,
        ),
      disconnect: () => pool.end(),
      handler,
      logger: this.#logger,
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  async check(signal: AbortSignal): Promise<void> {
    await abortable(Promise.all([this.#pool.query('SELECT 1'), this.channel.check(signal)]), signal);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.close({ drainMs: 0 })));
    await Promise.all([...this.#queues.values(), ...this.#tasks.values()].map((queue) => queue.close()));
    await this.channel.close();
    await this.#pool.end();
  }
}
