import type { FinishReason } from '../contract/chat.js';
import { type ErrorKind, ServiceError } from '../contract/errors.js';
import type { Frame, Spent, Timings } from '../contract/frame.js';
import type { Job } from '../contract/job.js';

/** Frames that carry a reply, as opposed to those that say it will not come. */
export type ReplyFrame = Exclude<Frame, { type: 'failed' | 'cancelled' }>;

/** How a request ended, and what the worker spent on it. */
export interface Ending {
  readonly reason: FinishReason | 'ranked' | 'cancelled' | ErrorKind;
  readonly spent: Spent;
  /** Milliseconds until a worker took it; undefined when none did. */
  readonly queueMs: number | undefined;
  /** Milliseconds until its first token or score; undefined when there was none or no worker could say. */
  readonly firstTokenMs: number | undefined;
}

/** The client closed its connection: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** What may wait for a client that reads slowly, see {@link charactersOf}; beyond it the request is dropped. */
const maxPendingCharacters = 1 << 20;

/** About what a delta, and a token with its log-probability, take up beside their text. */
const charactersPerDelta = 200;
const charactersPerLogprob = 60;

/**
 * One request's frames, in order and complete, or an error: never a silent gap.
 *
 * A reply is `open` until its last frame has come, or until it has failed with no job left to speak of: then it has
 * `ended`. In between it may be `dropped`: this side has given up on it (the client has gone, its deadline has passed,
 * frames were lost) and waits only to hear what the job had cost.
 *
 * A job that is run again restarts the reply with another `started` frame: whoever gathers forgets what came before
 * it. Once {@link commit} was called that is impossible, and the reply fails.
 */
export class Reply implements AsyncIterable<readonly ReplyFrame[]> {
  readonly id: string;
  readonly model: string;
  /** Resolves when all is known about the request; later than the client's answer when that was an error. */
  readonly ending: Promise<Ending>;
  /** Resolves when the queue has the job or has refused it. */
  enqueued: Promise<void> = Promise.resolve();
  readonly #onDrop: (reply: Reply) => void;
  readonly #aborter = new AbortController();
  #state: 'open' | 'dropped' | 'ended' = 'open';
  #attempt = 0;
  #nextSequence = 0;
  #committed = false;
  #pending: ReplyFrame[] = [];
  #pendingCharacters = 0;
  #wake: (() => void) | undefined;
  #failure: Error | undefined;
  #outcome: FinishReason | 'ranked' = 'stop';
  #completionTokens = 0;
  #queueMs: number | undefined;
  #lastHeardAt = performance.now();
  #end!: (ending: Ending) => void;

  /** `onDrop` sees to it that the job ends too, and calls {@link settle} when it has or cannot be reached. */
  constructor({ id, model }: Pick<Job, 'id' | 'model'>, { onDrop }: { onDrop: (reply: Reply) => void }) {
    this.id = id;
    this.model = model;
    this.#onDrop = onDrop;
    this.ending = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get state(): 'open' | 'dropped' | 'ended' {
    return this.#state;
  }

  /** When the last frame came, by performance.now(). */
  get lastHeardAt(): number {
    return this.#lastHeardAt;
  }

  /** Aborted with the error when there will be no complete reply. */
  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  /** Something that cannot be taken back is about to be sent. */
  commit(): void {
    this.#committed = true;
  }

  /** Follows the job into its queue; fails the reply when the queue does not take it. */
  follow(adding: Promise<void>): void {
    this.enqueued = adding.then(
      () => {
        this.#lastHeardAt = performance.now();
      },
      // The queue may have stored it all the same: its answer may be what was lost.
      (cause) => this.drop(new ServiceError('overloaded', undefined, { cause })),
    );
  }

  /** Drops the reply when `signal` aborts, whose reason is {@link ClientGone}. */
  dropWhen(signal: AbortSignal): void {
    const drop = () => this.drop(signal.reason);
    if (signal.aborted) drop();
    else signal.addEventListener('abort', drop, { once: true });
  }

  /** Takes the next frame from the channel. */
  receive(frame: Frame): void {
    if (this.#state === 'ended' || frame.attempt < this.#attempt) return;
    this.#lastHeardAt = performance.now();
    if (this.#state === 'dropped') {
      this.#receiveDropped(frame);
      return;
    }
    if (frame.attempt > this.#attempt) {
      if (!this.#restart(frame)) return;
    } else if (frame.sequence !== this.#nextSequence) {
      if (frame.sequence > this.#nextSequence) this.drop(framesLost(this.#nextSequence, frame));
      return;
    }
    this.#nextSequence++;
    this.#accept(frame);
  }

  /** Gives up on the request while its job may still be queued or running. */
  drop(failure: ServiceError | ClientGone): void {
    if (this.#state !== 'open') return;
    this.#state = 'dropped';
    this.#fail(failure);
    this.#onDrop(this);
  }

  /** Fails the request when its job is known to be over. */
  fail(failure: ServiceError): void {
    if (this.#state !== 'open') return;
    this.#fail(failure);
    this.settle();
  }

  /** Ends the reply with what is known of its cost. Does nothing when it has ended. */
  settle(known?: { spent: Spent; timings?: Timings }): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#end({
      reason: this.#reason(),
      spent: known?.spent ?? { promptTokens: 0, completionTokens: this.#completionTokens, cachedTokens: 0 },
      queueMs: known?.timings?.queueMs ?? this.#queueMs,
      firstTokenMs: known?.timings?.firstTokenMs ?? undefined,
    });
  }

  /** All frames that have come since the last turn, each turn; throws when the reply fails. */
  async *[Symbol.asyncIterator](): AsyncGenerator<readonly ReplyFrame[], void> {
    for (;;) {
      const frames = await this.#take();
      yield frames;
      const last = frames.at(-1)!.type;
      if (last === 'done' || last === 'ranked') return;
    }
  }

  async #take(): Promise<readonly ReplyFrame[]> {
    if (this.#pending.length === 0 && this.#failure === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#failure !== undefined) throw this.#failure;
    const frames = this.#pending;
    this.#pending = [];
    this.#pendingCharacters = 0;
    return frames;
  }

  /** Begins the attempt that `frame` belongs to; false when that is not possible. */
  #restart(frame: Frame): boolean {
    const first = this.#attempt === 0;
    this.#attempt = frame.attempt;
    this.#nextSequence = 0;
    this.#completionTokens = 0;
    if (!first && this.#committed) {
      this.drop(new ServiceError('overloaded', 'The model worker was lost in the middle of the reply.'));
      return false;
    }
    if (frame.sequence !== 0) {
      this.drop(framesLost(0, frame));
      return false;
    }
    this.#pending = [];
    this.#pendingCharacters = 0;
    return true;
  }

  #accept(frame: Frame): void {
    switch (frame.type) {
      case 'started':
        this.#queueMs = frame.queueMs;
        this.#hand(frame);
        return;
      case 'delta':
        this.#completionTokens += frame.tokens;
        this.#pendingCharacters += charactersOf(frame);
        this.#hand(frame);
        if (this.#pendingCharacters > maxPendingCharacters) {
          this.drop(new ServiceError('overloaded', 'The reply was read too slowly.'));
        }
        return;
      case 'finish':
        if (frame.choice === 0) this.#outcome = frame.reason;
        this.#hand(frame);
        return;
      case 'done':
      case 'ranked':
        if (frame.type === 'ranked') this.#outcome = 'ranked';
        this.settle(frame);
        this.#hand(frame);
        return;
      case 'failed':
        this.#fail(failureOf(frame));
        this.settle(frame);
        return;
      case 'cancelled':
        this.#fail(new ServiceError('overloaded', 'The model worker stopped before it had answered.'));
        this.settle(frame);
        return;
      default:
        frame satisfies never;
    }
  }

  #receiveDropped(frame: Frame): void {
    this.#attempt = frame.attempt;
    if (frame.type === 'delta') this.#completionTokens += frame.tokens;
    if ('spent' in frame) this.settle(frame);
  }

  #hand(frame: ReplyFrame): void {
    this.#pending.push(frame);
    this.#wake?.();
  }

  #fail(failure: Error): void {
    this.#failure = failure;
    this.#pending = [];
    this.#wake?.();
    this.#aborter.abort(failure);
  }

  #reason(): Ending['reason'] {
    if (this.#failure instanceof ServiceError) return this.#failure.kind;
    return this.#failure === undefined ? this.#outcome : 'cancelled';
  }
}

/** About how much a delta takes up in memory and on the wire, in UTF-16 units. */
function charactersOf({ text, logprobs = [], toolCalls = [] }: Extract<Frame, { type: 'delta' }>): number {
  const tokens = logprobs.reduce((sum, { top_logprobs }) => sum + 1 + top_logprobs.length, 0);
  const calls = toolCalls.reduce(
    (sum, call) => sum + charactersPerDelta + (call.function.arguments?.length ?? 0),
    0,
  );
  return text.length + charactersPerDelta + tokens * charactersPerLogprob + calls;
}

/** What a worker says about its own inside is not for the client. */
function failureOf({ error, message, retryAfterSeconds }: Extract<Frame, { type: 'failed' }>): ServiceError {
  return new ServiceError(error, error === 'internal' ? undefined : message, { retryAfterSeconds });
}

function framesLost(expected: number, { attempt, sequence }: Frame): ServiceError {
  const cause = new Error(`attempt ${attempt}: expected frame ${expected} and received ${sequence}`);
  return new ServiceError('internal', undefined, { cause });
}
