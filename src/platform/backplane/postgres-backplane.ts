import { createPostgresBackend, Queue, runMigrations, Worker } from 'bullmq';
import type pg from 'pg';
import { abortable } from '../abortable.js';
import type { Logger } from '../logger.js';
import type {
  Backplane,
  ConsumeOptions,
  JobConsumer,
  JobHandler,
  JobQueue,
  TaskHandler,
  TaskQueue,
} from './backplane.js';
import { BullBroker, type BullServer, noEvents } from './bull-broker.js';
import { leaveNothing } from './bull-consumer.js';
import { OutageLog } from './outage-log.js';
import { PostgresChannel } from './postgres-channel.js';
import { openQueuePool } from './queue-pool.js';

/** BullMQ's Postgres backend, in the schema `bullmq` of the service's database, and LISTEN/NOTIFY. */
export class PostgresBackplane implements Backplane {
  readonly kind = 'postgres';
  readonly channel: PostgresChannel;
  readonly #pool: pg.Pool;
  readonly #broker: BullBroker;
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
    const { url, logger, pool, channel } = options;
    this.#pool = pool;
    this.#broker = new BullBroker({ server: bullServer(url, pool), logger });
    this.channel = channel;
  }

  queue(modelId: string): JobQueue {
    return this.#broker.queue(modelId);
  }

  tasks(name: string): TaskQueue {
    return this.#broker.tasks(name);
  }

  consume(modelId: string, handler: JobHandler, options: ConsumeOptions): Promise<JobConsumer> {
    return this.#broker.consume(modelId, handler, options);
  }

  work(name: string, handler: TaskHandler, options: ConsumeOptions): Promise<JobConsumer> {
    return this.#broker.work(name, handler, options);
  }

  async check(signal: AbortSignal): Promise<void> {
    await abortable(Promise.all([this.#pool.query('SELECT 1'), this.channel.check(signal)]), signal);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#broker.close();
    await this.channel.close();
    await this.#pool.end();
  }
}

function bullServer(url: string, connection: pg.Pool): BullServer {
  return {
    openQueue: (name) =>
      new Queue(
        name,
        { connection, defaultJobOptions: leaveNothing, streams: noEvents },
        createPostgresBackend,
      ),
    // One session is the worker's LISTEN, for as long as it runs.
    connectWorker: ({ sessions }) => {
      const pool = openQueuePool(url, { maxConnections: sessions });
      return {
        open: (name, process, options) =>
          new Worker(name, process, { ...options, connection: pool }, createPostgresBackend),
        disconnect: () => pool.end(),
      };
    },
  };
}
