import type { Job } from '../../contract/job.js';

/**
 * Everything that crosses processes: queues of jobs and channels of messages. Two real implementations exist,
 * `RedisBackplane` and `PostgresBackplane`; nothing outside this folder knows which one runs.
 */
export interface Backplane {
  readonly kind: 'redis' | 'postgres';
  /** The producer's side of a model's queue. Queues are cached; the backplane closes them. */
  queue(modelId: string): JobQueue;
  /** Takes jobs of a model until the consumer is closed. */
  consume(modelId: string, handler: JobHandler, options: ConsumeOptions): Promise<JobConsumer>;
  /** The producer's side of a queue of tasks. Cached and closed as the queues of models are. */
  tasks(name: string): TaskQueue;
  /** Does tasks of this name until the consumer is closed. */
  work(name: string, handler: TaskHandler, options: ConsumeOptions): Promise<JobConsumer>;
  readonly channel: Channel;
  /** Resolves when queue and channel answer; rejects with the reason, or when `signal` aborts. */
  check(signal: AbortSignal): Promise<void>;
  /** Closes every queue, consumer and connection. Idempotent. */
  close(): Promise<void>;
}

export interface JobQueue {
  /**
   * Resolves once the job is stored; a consumer may have taken it by then.
   * @throws Error when the store cannot be reached within a few seconds: a client is waiting.
   */
  add(job: Job): Promise<void>;
  /** True when the job was still waiting and is now gone; false when it runs, has ended or never was. */
  remove(jobId: string): Promise<boolean>;
  /** `gone`: ended one way or another, or never was. */
  state(jobId: string): Promise<'waiting' | 'active' | 'gone'>;
  /** Jobs waiting to be taken. */
  depth(): Promise<number>;
}

export interface Delivery {
  readonly jobId: string;
  /** The payload as it was stored: parse it with `jobSchema`. */
  readonly payload: unknown;
  /** 1 for the first run; more when an earlier consumer died holding it. */
  readonly attempt: number;
  /** Aborted when the hold on the job is lost, so that another consumer may run it, or on a forced close. */
  readonly signal: AbortSignal;
}

/** Runs one job. The job is over when the promise settles, either way: failures are reported by frames. */
export type JobHandler = (delivery: Delivery) => Promise<void>;

export interface ConsumeOptions {
  /** Jobs held at once. */
  readonly concurrency: number;
  /** A job whose consumer is silent for this long is given to another, as the next attempt. */
  readonly lockMs?: number;
}

export interface JobConsumer {
  /** Takes no more jobs and waits for those held, at most `drainMs`; then aborts their signals. */
  close(options: { drainMs: number }): Promise<void>;
}

/** Work that nobody waits for and that has to be done all the same. What it is stands in the database. */
export interface TaskQueue {
  /**
   * Resolves once the task is stored. One that is there already is left as it is.
   * @param id Letters, digits and hyphens, and not digits alone.
   * @throws Error when the store cannot be reached within a few seconds.
   */
  add(id: string): Promise<void>;
}

/**
 * Does one task. The task is over when this resolves with undefined, and else runs again after so many milliseconds.
 * One that throws, or whose process dies, runs again later too, a limited number of times.
 */
export type TaskHandler = (id: string) => Promise<{ readonly retryMs: number } | undefined>;

/** Messages to whoever listens now; nothing is stored. The order of one publisher on one channel is kept. */
export interface Channel {
  /** Resolves when handed to the server. Messages of any length are allowed. */
  publish(name: string, message: string): Promise<void>;
  /**
   * Resolves when every later message will be heard. The subscription renews itself after an outage; messages
   * sent during the outage are lost.
   */
  subscribe(name: string, listener: (message: string) => void): Promise<Subscription>;
}

export interface Subscription {
  close(): Promise<void>;
}
