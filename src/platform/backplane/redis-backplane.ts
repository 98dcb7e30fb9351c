import { Queue, Worker } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import { keyPrefix, queueName, taskQueueName } from '../../contract/names.js';
import { abortable } from '../abortable.js';
import type { Logger } from '../logger.js';
import type { Backplane, ConsumeOptions, JobConsumer, JobHandler, TaskHandler } from './backplane.js';
import { BullConsumer, leaveNothing, workerOptions } from './bull-consumer.js';
import { BullQueue } from './bull-queue.js';
import { BullTasks, startTaskConsumer, taskWorkerOptions } from './bull-tasks.js';
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
  readonly #url: string;
  readonly #logger: Logger;
  readonly #commands: Redis;
  readonly #subscriber: Redis;
  readonly #queues = new Map<string, BullQueue>();
  readonly #tasks = new Map<string, BullTasks>();
  readonly #consumers = new Set<JobConsumer>();
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
    this.#url = url;
    this.#logger = logger;
    this.#commands = new Redis(url, impatient);
    this.#subscriber = new Redis(url, { ...impatient, autoResubscribe: false });
    // Without listeners an error would end the process; it is told of by whoever it fails.
    this.#commands.on('error', () => {});
    this.#subscriber.on('error', () => {});
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

  #openQueue(name: string): Queue {
    // BullMQ would wait for the server to come back before it sends the first command.
    if (this.#commands.status !== 'ready') throw new Error('Redis is away');
    const opened = new Queue(name, {
      connection: this.#commands,
      prefix: keyPrefix,
      defaultJobOptions: leaveNothing,
      // Nobody reads the events, and every queue call would add to them.
      streams: { events: { maxLen: 0 } },
    });
    opened.on('error', (error) => this.#logger.debug({ err: error }, 'queue error'));
    return opened;
  }

  async consume(modelId: string, handler: JobHandler, options: ConsumeOptions): Promise<JobConsumer> {
    const connection = new Redis(this.#url, patient);
    connection.on('error', () => {});
    const consumer = await BullConsumer.start({
      open: (process) =>
        new Worker(queueName(modelId), process, { ...workerOptions(options), connection, prefix: keyPrefix }),
      disconnect: async () => connection.disconnect(),
      handler,
      options,
      logger: this.#logger,
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  async work(name: string, handler: TaskHandler, options: ConsumeOptions): Promise<JobConsumer> {
    const connection = new Redis(this.#url, patient);
    connection.on('error', () => {});
    const consumer = await startTaskConsumer({
      open: (process) =>
        new Worker(taskQueueName(name), process, {
          ...taskWorkerOptions(options),
          connection,
          prefix: keyPrefix,
        }),
      disconnect: async () => connection.disconnect(),
      handler,
      logger: this.#logger,
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  async check(signal: AbortSignal): Promise<void> {
    await abortable(Promise.all([this.#commands.ping(), this.#subscriber.ping()]), signal);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.close({ drainMs: 0 })));
    await Promise.all([...this.#queues.values(), ...this.#tasks.values()].map((queue) => queue.close()));
    this.#subscriber.disconnect();
    this.#commands.disconnect();
  }
}
