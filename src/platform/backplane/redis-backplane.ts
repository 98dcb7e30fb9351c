import { Queue, Worker } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import { keyPrefix } from '../../contract/names.js';
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
import { RedisChannel } from './redis-channel.js';

const connectTimeoutMs = 5_000;

const base: RedisOptions = {
  lazyConnect: true,
  connectTimeout: connectTimeoutMs,
  retryStrategy: (attempt) => Math.min(100 * attempt, 1_000),
};
/** A command fails when the server is away: somebody waits for it, and sending it later would be too late. */
const impatient: RedisOptions = {
  ...base,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  commandTimeout: connectTimeoutMs,
};
/** A worker's commands wait for the server to come back: BullMQ counts on that. */
const patient: RedisOptions = { ...base, maxRetriesPerRequest: null };

/** BullMQ on Redis, and Redis pub/sub. */
export class RedisBackplane implements Backplane {
  readonly kind = 'redis';
  readonly channel: RedisChannel;
  readonly #logger: Logger;
  readonly #commands: Redis;
  readonly #subscriber: Redis;
  readonly #broker: BullBroker;
  #closing: Promise<void> | undefined;

  /** @throws Error when the server does not answer within a few seconds. */
  static async open(options: { url: string; logger: Logger }): Promise<RedisBackplane> {
    const backplane = new RedisBackplane(options);
    try {
      await backplane.#connect(AbortSignal.timeout(connectTimeoutMs));
      return backplane;
    } catch (error) {
      await backplane.close();
      throw error;
    }
  }

  private constructor({ url, logger }: { url: string; logger: Logger }) {
    this.#logger = logger;
    this.#commands = new Redis(url, impatient);
    this.#subscriber = new Redis(url, { ...impatient, autoResubscribe: false });
    // Without listeners an error would end the process; it is told of by whoever it fails.
    this.#commands.on('error', () => {});
    this.#subscriber.on('error', () => {});
    this.#broker = new BullBroker({ server: bullServer(url, this.#commands), logger });
    this.channel = new RedisChannel({ publisher: this.#commands, subscriber: this.#subscriber, logger });
  }

  async #connect(signal: AbortSignal): Promise<void> {
    let reason: Error | undefined;
    this.#commands.on('error', (error) => {
      reason = error;
    });
    try {
      await abortable(Promise.all([this.#commands.connect(), this.#subscriber.connect()]), signal);
    } catch (error) {
      // The rejection says no more than that the connection was closed.
      throw reason ?? error;
    }
    const outage = new OutageLog('Redis', this.#logger);
    this.#commands.on('ready', () => outage.restored());
    this.#commands.on('close', () => {
      if (!this.#closing) outage.lost(reason);
    });
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
    await abortable(Promise.all([this.#commands.ping(), this.#subscriber.ping()]), signal);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#broker.close();
    this.#subscriber.disconnect();
    this.#commands.disconnect();
  }
}

function bullServer(url: string, commands: Redis): BullServer {
  return {
    openQueue: (name) => {
      // BullMQ would wait for the server to come back before it sends the first command.
      if (commands.status !== 'ready') throw new Error('Redis is away');
      return new Queue(name, {
        connection: commands,
        prefix: keyPrefix,
        defaultJobOptions: leaveNothing,
        streams: noEvents,
      });
    },
    connectWorker: () => {
      const connection = new Redis(url, patient);
      connection.on('error', () => {});
      return {
        open: (name, process, options) =>
          new Worker(name, process, { ...options, connection, prefix: keyPrefix }),
        disconnect: async () => connection.disconnect(),
      };
    },
  };
}
