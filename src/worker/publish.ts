import type { Frame } from '../contract/frame.js';
import { replyChannel } from '../contract/names.js';
import type { Channel } from '../platform/backplane/backplane.js';
import type { Logger } from '../platform/logger.js';

type WithoutAddress<F> = F extends Frame ? Omit<F, 'id' | 'attempt' | 'sequence'> : never;
/** What a frame says, without the address that its {@link Reply} gives it. */
export type FrameBody = WithoutAddress<Frame>;

export interface PublisherOptions {
  readonly channel: Channel;
  readonly logger: Logger;
  /** How long a message is tried before it is given up, and the longest pause between two tries. */
  readonly patienceMs?: number;
  readonly maxPauseMs?: number;
}

export interface ReplyOptions {
  readonly id: string;
  readonly attempt: number;
  /** The API process that waits. */
  readonly replyTo: string;
  /** Called when a frame could not be delivered: the reply has a hole and is worth nothing now. */
  readonly onLost: () => void;
}

/**
 * Sends frames to API processes. What is said in one turn of the event loop (the events of one engine step) to the
 * same process is one message; messages to one process leave one after the other, so that an outage delays frames
 * and never reorders them.
 */
export class Publisher {
  readonly #options: Required<PublisherOptions>;
  readonly #outboxes = new Map<string, Outbox>();

  constructor(options: PublisherOptions) {
    this.#options = { patienceMs: 15_000, maxPauseMs: 1_000, ...options };
  }

  reply(options: ReplyOptions): Reply {
    return new Reply(options, (frame) => this.#outbox(options.replyTo).add(frame, options.onLost));
  }

  /** API processes that something is on the way to. */
  get busy(): number {
    return this.#outboxes.size;
  }

  #outbox(replyTo: string): Outbox {
    const known = this.#outboxes.get(replyTo);
    if (known !== undefined) return known;
    const name = replyChannel(replyTo);
    const outbox = new Outbox({
      publish: (message) => this.#publish(name, message),
      onEmpty: () => this.#outboxes.delete(replyTo),
    });
    this.#outboxes.set(replyTo, outbox);
    return outbox;
  }

  /** True when the message was handed over within the time that publishing is tried for. */
  async #publish(name: string, message: string): Promise<boolean> {
    const { channel, logger, patienceMs, maxPauseMs } = this.#options;
    const giveUp = new AbortController();
    const timer = setTimeout(() => giveUp.abort(), patienceMs);
    const gaveUp = new Promise<'gave up'>((resolve) => {
      giveUp.signal.addEventListener('abort', () => resolve('gave up'), { once: true });
    });
    try {
      for (let pauseMs = Math.min(20, maxPauseMs); ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
        // A message that only hangs is not sent again: it may still arrive, and must not arrive twice.
        const attempt = channel.publish(name, message).then(
          () => 'sent' as const,
          (error: unknown) => ({ error }),
        );
        const result = await Promise.race([attempt, gaveUp]);
        if (result === 'sent') return true;
        if (result !== 'gave up') {
          logger.warn({ err: result.error, channel: name }, 'a reply could not be published; trying again');
          await Promise.race([pause(pauseMs), gaveUp]);
        }
        if (giveUp.signal.aborted) {
          logger.error({ channel: name }, `a reply could not be published within ${patienceMs / 1000} s`);
          return false;
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** The frames of one attempt at one request, numbered from 0 without a gap. */
export class Reply {
  readonly #address: { readonly id: string; readonly attempt: number };
  readonly #post: (frame: Frame) => Promise<void>;
  #sequence = 0;
  #last: Promise<void> = Promise.resolve();

  constructor({ id, attempt }: ReplyOptions, post: (frame: Frame) => Promise<void>) {
    this.#address = { id, attempt };
    this.#post = post;
  }

  send(body: FrameBody): void {
    const frame: Frame = { ...body, ...this.#address, sequence: this.#sequence };
    this.#sequence += 1;
    this.#last = this.#post(frame);
  }

  /** Resolves when every frame sent so far was handed over, or was lost. Never rejects. */
  delivered(): Promise<void> {
    return this.#last;
  }
}

/** Frames that leave together. */
interface Parcel {
  readonly frames: Frame[];
  readonly losers: Set<() => void>;
  readonly gone: Promise<void>;
  readonly markGone: () => void;
}

function newParcel(): Parcel {
  let markGone = () => {};
  const gone = new Promise<void>((resolve) => {
    markGone = resolve;
  });
  return { frames: [], losers: new Set(), gone, markGone: () => markGone() };
}

/** What waits to be sent to one API process. */
class Outbox {
  readonly #publish: (message: string) => Promise<boolean>;
  readonly #onEmpty: () => void;
  #gathering: Parcel | undefined;
  #sending = false;

  constructor(options: { publish: (message: string) => Promise<boolean>; onEmpty: () => void }) {
    this.#publish = options.publish;
    this.#onEmpty = options.onEmpty;
  }

  add(frame: Frame, onLost: () => void): Promise<void> {
    this.#gathering ??= newParcel();
    const parcel = this.#gathering;
    parcel.frames.push(frame);
    parcel.losers.add(onLost);
    if (!this.#sending) {
      this.#sending = true;
      queueMicrotask(() => void this.#send());
    }
    return parcel.gone;
  }

  async #send(): Promise<void> {
    while (this.#gathering !== undefined) {
      const parcel = this.#gathering;
      this.#gathering = undefined;
      if (!(await this.#publish(JSON.stringify({ frames: parcel.frames }))))
        for (const lose of parcel.losers) lose();
      parcel.markGone();
    }
    this.#sending = false;
    this.#onEmpty();
  }
}
