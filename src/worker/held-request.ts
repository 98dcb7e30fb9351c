import type { ErrorKind } from '../contract/errors.js';
import type { Spent, Timings } from '../contract/frame.js';
import type { Job } from '../contract/job.js';
import type { Clock } from './clock.js';
import type { Reply } from './publish.js';

/** How a request ends when it is not answered. */
export type Ending =
  /** The client has gone: a `cancelled` frame says what was spent. */
  | { readonly type: 'cancelled' }
  /** Nobody listens, or another worker owns the request now: no further frame. */
  | { readonly type: 'silent' }
  | {
      readonly type: 'failed';
      readonly error: ErrorKind;
      readonly message?: string;
      readonly retryAfterSeconds?: number | undefined;
    };

/** The reason of a held request's signal. */
export class RequestEnded extends Error {
  override readonly name = 'RequestEnded';
  readonly ending: Ending;

  constructor(ending: Ending) {
    super(`The request ended: ${ending.type === 'failed' ? ending.error : ending.type}`);
    this.ending = ending;
  }
}

export interface HeldRequestOptions {
  readonly job: Job;
  readonly reply: Reply;
  readonly clock: Clock;
}

/** Node.js fires timers that are further away at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * A request that this worker holds: taken from the queue, then admitted by the engine, then answered or ended.
 * `end` is the one way to stop it early; the first ending counts.
 */
export class HeldRequest {
  readonly job: Job;
  readonly reply: Reply;
  /** From enqueueing until it was taken. */
  readonly queueMs: number;
  /** Past the engine's queue. */
  admitted = false;
  /** Tokens set aside for it by now; undefined when it may use any number. */
  reservedTokens: number | undefined;
  spent: Spent = { promptTokens: 0, completionTokens: 0, cachedTokens: 0 };
  readonly #clock: Clock;
  readonly #ended = new AbortController();
  readonly #deadline: NodeJS.Timeout;
  #firstTokenMs: number | null = null;

  constructor({ job, reply, clock }: HeldRequestOptions) {
    this.job = job;
    this.reply = reply;
    this.reservedTokens = job.reservedTokens;
    this.#clock = clock;
    this.queueMs = this.#sinceEnqueued();
    const leftMs = job.deadlineAt - clock.now();
    this.#deadline = setTimeout(() => this.end(deadlinePassed), Math.min(Math.max(0, leftMs), maxTimerMs));
    if (leftMs <= 0) this.end(deadlinePassed);
  }

  /** Aborted, with a {@link RequestEnded}, when the request is to stop. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  end(ending: Ending): void {
    this.#ended.abort(new RequestEnded(ending));
  }

  /** Says that the first token or score is there; later calls change nothing. */
  markFirstToken(): void {
    this.#firstTokenMs ??= this.#sinceEnqueued();
  }

  timings(): Timings {
    return { queueMs: this.queueMs, firstTokenMs: this.#firstTokenMs, totalMs: this.#sinceEnqueued() };
  }

  release(): void {
    clearTimeout(this.#deadline);
  }

  /** The clock of the API process that enqueued it may be ahead of this one. */
  #sinceEnqueued(): number {
    return Math.max(0, this.#clock.now() - this.job.enqueuedAt);
  }
}

const deadlinePassed: Ending = { type: 'failed', error: 'deadlineExceeded' };
