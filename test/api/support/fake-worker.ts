import { type Control, controlSchema } from '../../../src/contract/control.js';
import type { Frame, Spent } from '../../../src/contract/frame.js';
import { type Job, jobSchema } from '../../../src/contract/job.js';
import { controlChannel, replyChannel } from '../../../src/contract/names.js';
import type { Channel, JobConsumer } from '../../../src/platform/backplane/backplane.js';
import type { MemoryBackplane } from '../../support/memory-backplane.js';

type Unaddressed<F> = F extends Frame ? Omit<F, 'id' | 'attempt' | 'sequence'> : never;
export type FrameBody = Unaddressed<Frame>;

export const noneSpent: Spent = { promptTokens: 0, completionTokens: 0, cachedTokens: 0 };

/** A job that a {@link FakeWorker} has taken: the test says what becomes of it. */
export class FakeRun {
  readonly job: Job;
  /** The job stays active until this is called. */
  readonly release: () => void;
  /** Resolves when the worker is told to drop the job. */
  readonly cancelled: Promise<void>;
  readonly #channel: Channel;
  #attempt = 1;
  #sequence = 0;

  constructor(job: Job, options: { channel: Channel; cancelled: Promise<void>; release: () => void }) {
    this.job = job;
    this.#channel = options.channel;
    this.cancelled = options.cancelled;
    this.release = options.release;
  }

  /** Sends frames in one message, numbered on. */
  async send(...bodies: FrameBody[]): Promise<void> {
    const { id, replyTo } = this.job;
    const frames = bodies.map((body) => ({
      ...body,
      id,
      attempt: this.#attempt,
      sequence: this.#sequence++,
    }));
    await this.#channel.publish(replyChannel(replyTo), JSON.stringify({ frames }));
  }

  /** Uses up a number without sending its frame. */
  loseFrame(): void {
    this.#sequence++;
  }

  /** What another worker does that takes the job over. */
  async restart(): Promise<void> {
    this.#attempt++;
    this.#sequence = 0;
    await this.start();
  }

  start(): Promise<void> {
    return this.send({ type: 'started', workerId: 'worker', queueMs: 1.5 });
  }

  text(text: string, choice = 0): Promise<void> {
    return this.send({ type: 'delta', choice, text, tokens: 1 });
  }

  async finish(reason: 'stop' | 'length' = 'stop', spent: Partial<Spent> = {}): Promise<void> {
    await this.send(
      { type: 'finish', choice: 0, reason },
      {
        type: 'done',
        spent: { promptTokens: 9, completionTokens: 2, cachedTokens: 0, ...spent },
        timings: { queueMs: 1.5, firstTokenMs: 12.25, totalMs: 20 },
      },
    );
    this.release();
  }

  async rank(scores: number[], promptTokens = 30): Promise<void> {
    await this.send({
      type: 'ranked',
      scores,
      spent: { promptTokens, completionTokens: 0, cachedTokens: 0 },
      timings: { queueMs: 1.5, firstTokenMs: 12.25, totalMs: 20 },
    });
    this.release();
  }

  async fail(error: Extract<FrameBody, { type: 'failed' }>['error'], message: string): Promise<void> {
    await this.send({ type: 'failed', error, message, spent: { ...noneSpent, promptTokens: 5 } });
    this.release();
  }

  async cancel(spent: Partial<Spent>): Promise<void> {
    await this.send({
      type: 'cancelled',
      spent: { ...noneSpent, ...spent },
      timings: { queueMs: 1.5, firstTokenMs: 12.25, totalMs: 20 },
    });
    this.release();
  }
}

/** Takes jobs from a model's queue as a worker does, and leaves what to answer to the test. */
export class FakeWorker {
  readonly #runs: FakeRun[] = [];
  readonly #releases: (() => void)[] = [];
  readonly #waiting: ((run: FakeRun) => void)[] = [];
  readonly #cancellations = new Map<string, () => void>();
  #consumer: JobConsumer | undefined;

  static async start(backplane: MemoryBackplane, model: string): Promise<FakeWorker> {
    const worker = new FakeWorker();
    await backplane.channel.subscribe(controlChannel(model), (message) => {
      const control: Control = controlSchema.parse(JSON.parse(message));
      worker.#cancellations.get(control.id)?.();
    });
    worker.#consumer = await backplane.consume(
      model,
      ({ payload }) =>
        new Promise<void>((release) => {
          const job = jobSchema.parse(payload);
          worker.#releases.push(release);
          const cancelled = new Promise<void>((resolve) => worker.#cancellations.set(job.id, resolve));
          worker.#offer(new FakeRun(job, { channel: backplane.channel, cancelled, release }));
        }),
      { concurrency: 1_000 },
    );
    return worker;
  }

  /** The next job that arrives, or has arrived and was not asked for. */
  next(): Promise<FakeRun> {
    const run = this.#runs.shift();
    return run === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(run);
  }

  /** Answers every job from now on. */
  async answerAll(answer: (run: FakeRun) => Promise<void>): Promise<void> {
    for (;;) await answer(await this.next());
  }

  async stop(): Promise<void> {
    for (const release of this.#releases) release();
    await this.#consumer?.close({ drainMs: 0 });
  }

  #offer(run: FakeRun): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#runs.push(run);
    else waiting(run);
  }
}
