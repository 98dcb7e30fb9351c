import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '../contract/errors.js';
import { frameMessageSchema } from '../contract/frame.js';
import type { Job } from '../contract/job.js';
import { controlChannel, replyChannel } from '../contract/names.js';
import type { Backplane, Subscription } from '../platform/backplane/backplane.js';
import type { Logger } from '../platform/logger.js';
import { Reply } from './reply.js';
import { ReplyWatchdog, type WatchTiming, watchTiming } from './reply-watchdog.js';

export interface ReplyTiming extends WatchTiming {
  /** How long a worker may take to say what a request cost that was dropped. */
  readonly releaseMs: number;
  /** How often it is told to drop it until it says so. */
  readonly recancelMs: number;
}

export const replyTiming: ReplyTiming = { ...watchTiming, releaseMs: 10_000, recancelMs: 1_000 };

export interface RepliesOptions {
  /** This process: `replyTo` of its jobs. */
  readonly apiId: string;
  readonly backplane: Pick<Backplane, 'queue' | 'channel'>;
  readonly logger: Logger;
  readonly timing?: Partial<ReplyTiming>;
}

/**
 * The requests of this process that wait for frames. One subscription, made before anything is enqueued, brings the
 * frames of all of them.
 */
export class Replies {
  readonly #options: RepliesOptions;
  readonly #timing: ReplyTiming;
  readonly #open = new Map<string, Reply>();
  readonly #closing = new AbortController();
  readonly #watchdog: ReplyWatchdog;
  #subscription: Subscription | undefined;

  private constructor(options: RepliesOptions) {
    this.#options = options;
    this.#timing = { ...replyTiming, ...options.timing };
    this.#watchdog = new ReplyWatchdog(this.#open, { backplane: options.backplane, timing: this.#timing });
  }

  static async open(options: RepliesOptions): Promise<Replies> {
    const replies = new Replies(options);
    try {
      replies.#subscription = await options.backplane.channel.subscribe(
        replyChannel(options.apiId),
        (message) => replies.#receive(message),
      );
    } catch (error) {
      replies.#watchdog.stop();
      throw error;
    }
    return replies;
  }

  /** Requests that wait, or whose cost is still to be heard of. */
  get size(): number {
    return this.#open.size;
  }

  /** Begins to listen for a request. To be called before its job is enqueued. */
  register(job: Pick<Job, 'id' | 'model' | 'deadlineAt'>): Reply {
    const reply = new Reply(job, { onDrop: (dropped) => void this.#release(dropped) });
    this.#open.set(job.id, reply);
    const deadline = setTimeout(
      () => reply.drop(new ServiceError('deadlineExceeded')),
      Math.max(0, job.deadlineAt - Date.now()),
    );
    void reply.ending.then(() => {
      clearTimeout(deadline);
      this.#open.delete(job.id);
    });
    return reply;
  }

  /** Gives up on every request; what they cost is still waited for, see {@link close}. */
  dropAll(failure: ServiceError): void {
    for (const reply of this.#open.values()) reply.drop(failure);
  }

  /** Drops what is left, waits at most `graceMs` for what it cost, and stops listening. */
  async close({ graceMs }: { graceMs: number }): Promise<void> {
    this.#watchdog.stop();
    this.dropAll(new ServiceError('overloaded', 'The service is stopping. Please try again.'));
    const endings = [...this.#open.values()].map(({ ending }) => ending);
    await Promise.race([Promise.all(endings), sleep(graceMs, undefined, { ref: false })]);
    this.#closing.abort();
    for (const reply of this.#open.values()) reply.settle();
    await this.#subscription?.close();
  }

  #receive(message: string): void {
    let parsed: ReturnType<typeof frameMessageSchema.safeParse>;
    try {
      parsed = frameMessageSchema.safeParse(JSON.parse(message));
    } catch {
      parsed = { success: false, error: undefined as never };
    }
    if (!parsed.success) {
      // Whoever waited for these frames finds them missing by their numbers.
      this.#options.logger.error(
        { characters: message.length },
        'a message on the reply channel is not frames',
      );
      return;
    }
    for (const frame of parsed.data.frames) this.#open.get(frame.id)?.receive(frame);
  }

  /** Ends the job of a reply that was dropped, wherever it is, and hears what it cost. */
  async #release(reply: Reply): Promise<void> {
    const { backplane, logger } = this.#options;
    const { releaseMs, recancelMs } = this.#timing;
    const giveUpAt = performance.now() + releaseMs;
    await reply.enqueued;
    while (reply.state !== 'ended' && performance.now() < giveUpAt && !this.#closing.signal.aborted) {
      try {
        if (await backplane.queue(reply.model).remove(reply.id)) break;
        // The worker may not have unpacked the job yet when the first of these arrives: hence the repetition.
        const cancel = JSON.stringify({ type: 'cancel', id: reply.id });
        await backplane.channel.publish(controlChannel(reply.model), cancel);
      } catch (error) {
        logger.debug({ id: reply.id, err: error }, 'a dropped request cannot be cancelled yet');
      }
      await Promise.race([reply.ending, sleep(recancelMs, undefined, { ref: false })]);
    }
    reply.settle();
  }
}
