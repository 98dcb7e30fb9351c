import { ServiceError } from '../contract/errors.js';
import { abortable } from '../platform/abortable.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import type { Reply } from './reply.js';

export interface WatchTiming {
  /** How often silent requests are looked for. */
  readonly watchMs: number;
  /** A request that has heard nothing for this long asks the queue what became of its job. */
  readonly silenceMs: number;
  /** When the queue has not answered for this long, the requests that wait in silence fail. */
  readonly outageMs: number;
}

export const watchTiming: WatchTiming = { watchMs: 1_000, silenceMs: 5_000, outageMs: 30_000 };

/** Requests that ask the queue at once. */
const maxChecks = 100;

/**
 * Sees to it that no request waits for a reply that was lost: frames sent during an outage are stored nowhere. A job
 * that waits or runs may take as long as the request's deadline allows; one that is gone has nothing more to say.
 */
export class ReplyWatchdog {
  readonly #replies: ReadonlyMap<string, Reply>;
  readonly #backplane: Pick<Backplane, 'queue'>;
  readonly #timing: WatchTiming;
  readonly #timer: NodeJS.Timeout;
  readonly #asked = new WeakMap<Reply, { readonly at: number; readonly gone: boolean }>();
  #checking = false;
  #outageSince: number | undefined;

  constructor(
    replies: ReadonlyMap<string, Reply>,
    { backplane, timing }: { backplane: Pick<Backplane, 'queue'>; timing: WatchTiming },
  ) {
    this.#replies = replies;
    this.#backplane = backplane;
    this.#timing = timing;
    this.#timer = setInterval(() => void this.#check(), timing.watchMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    if (this.#checking) return;
    this.#checking = true;
    const silentSince = performance.now() - this.#timing.silenceMs;
    const isDue = (reply: Reply) => {
      if (reply.state !== 'open' || reply.lastHeardAt > silentSince) return false;
      const asked = this.#asked.get(reply);
      return asked === undefined || asked.gone || asked.at <= silentSince;
    };
    const due = [...this.#replies.values()].filter(isDue).slice(0, maxChecks);
    await Promise.all(due.map((reply) => this.#ask(reply)));
    this.#checking = false;
  }

  async #ask(reply: Reply): Promise<void> {
    const at = performance.now();
    await reply.enqueued;
    const gone = await this.#isGone(reply);
    if (gone === undefined) return;
    // Its last frames may still be on their way when a job has just ended: gone counts when seen twice.
    const before = this.#asked.get(reply);
    if (gone && before?.gone === true && before.at > reply.lastHeardAt) {
      reply.fail(new ServiceError('overloaded', 'The reply was lost on its way. Please try again.'));
    }
    this.#asked.set(reply, { at, gone });
  }

  /** Undefined when the queue cannot say. */
  async #isGone(reply: Reply): Promise<boolean | undefined> {
    try {
      const signal = AbortSignal.timeout(this.#timing.silenceMs);
      const state = await abortable(this.#backplane.queue(reply.model).state(reply.id), signal);
      this.#outageSince = undefined;
      return state === 'gone';
    } catch (cause) {
      this.#outageSince ??= performance.now();
      if (performance.now() - this.#outageSince > this.#timing.outageMs) {
        reply.drop(new ServiceError('overloaded', undefined, { cause }));
      }
      return undefined;
    }
  }
}
