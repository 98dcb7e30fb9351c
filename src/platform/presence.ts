import { presenceChannel } from '../contract/names.js';
import {
  type Presence,
  presenceIntervalMs,
  presenceSchema,
  presenceTimeoutMs,
} from '../contract/presence.js';
import type { Channel, Subscription } from './backplane/backplane.js';

export type WorkerPresence = Extract<Presence, { role: 'worker' }>;

/** What a process says of itself while it is there. */
type SelfDescription = Presence extends infer P ? (P extends Presence ? Omit<P, 'leaving'> : never) : never;

/** Milliseconds that only ever grow, and a timer. */
export interface Clock {
  now(): number;
  /** Calls `tick` every `ms` milliseconds; returns how to stop. */
  every(ms: number, tick: () => void): () => void;
}

const systemClock: Clock = {
  now: () => performance.now(),
  every: (ms, tick) => {
    const timer = setInterval(tick, ms).unref();
    return () => clearInterval(timer);
  },
};

/** A process that misses this many of its own announcements knows that it hears nobody. */
const missedBeforeDeaf = 2.5;

/**
 * Who is there. Announces this process about once a second and hears the others, this one included. A process is
 * gone when it said so or was silent for `presenceTimeoutMs`; silence counts only while this process hears
 * itself, so that an outage of the channel is nobody's death.
 */
export class PresenceBoard {
  readonly #channel: Channel;
  readonly #describe: () => SelfDescription;
  readonly #clock: Clock;
  readonly #seen = new Map<string, { presence: Presence; heardAt: number }>();
  readonly #goneListeners = new Set<(presence: Presence) => void>();
  #subscription: Subscription | undefined;
  #stopTicking = () => {};
  #heardSelfAt: number;
  #left = false;

  /** @param options.describe What to say of this process, asked at every announcement; its `id` never changes. */
  static async join(options: {
    channel: Channel;
    describe: () => SelfDescription;
    clock?: Clock;
  }): Promise<PresenceBoard> {
    const board = new PresenceBoard(options.channel, options.describe, options.clock ?? systemClock);
    board.#subscription = await options.channel.subscribe(presenceChannel, (text) => board.#hear(text));
    await board.announce();
    board.#stopTicking = board.#clock.every(presenceIntervalMs, () => board.#tick());
    return board;
  }

  private constructor(channel: Channel, describe: () => SelfDescription, clock: Clock) {
    this.#channel = channel;
    this.#describe = describe;
    this.#clock = clock;
    this.#heardSelfAt = clock.now();
  }

  /** The workers that serve a model, as they last described themselves. */
  workersOf(model: string): WorkerPresence[] {
    return [...this.#seen.values()].flatMap(({ presence }) =>
      presence.role === 'worker' && presence.model === model ? [presence] : [],
    );
  }

  /** Whether the process was heard of and is not gone. */
  isAlive(id: string): boolean {
    return this.#seen.has(id);
  }

  /** Calls `listener` with the last word of each process that is gone; returns how to stop. */
  onGone(listener: (presence: Presence) => void): () => void {
    this.#goneListeners.add(listener);
    return () => this.#goneListeners.delete(listener);
  }

  /** Says now what would be said within the second. */
  async announce(): Promise<void> {
    if (!this.#left) await this.#say();
  }

  /** Says goodbye and listens no more. */
  async leave(): Promise<void> {
    this.#stopTicking();
    this.#left = true;
    await this.#say();
    await this.#subscription?.close();
  }

  async #say(): Promise<void> {
    const presence: Presence = { ...this.#describe(), leaving: this.#left };
    // While the channel is away nobody can be told, and the next announcement is a second off.
    await this.#channel.publish(presenceChannel, JSON.stringify(presence)).catch(() => {});
  }

  #hear(text: string): void {
    const parsed = presenceSchema.safeParse(parseJson(text));
    if (!parsed.success) return;
    const presence = parsed.data;
    const now = this.#clock.now();
    if (presence.id === this.#describe().id) {
      if (this.#isDeaf(now)) this.#forgiveSilence(now);
      this.#heardSelfAt = now;
    }
    if (presence.leaving) {
      this.#lose(presence);
      return;
    }
    const isNew = !this.#seen.has(presence.id);
    this.#seen.set(presence.id, { presence, heardAt: now });
    // A newcomer need not wait a second to learn of us.
    if (isNew && presence.id !== this.#describe().id) void this.announce();
  }

  #tick(): void {
    const now = this.#clock.now();
    if (!this.#isDeaf(now)) {
      for (const { presence, heardAt } of this.#seen.values()) {
        if (now - heardAt > presenceTimeoutMs) this.#lose(presence);
      }
    }
    void this.announce();
  }

  #isDeaf(now: number): boolean {
    return now - this.#heardSelfAt > missedBeforeDeaf * presenceIntervalMs;
  }

  /** Everyone gets the full time to be heard again. */
  #forgiveSilence(now: number): void {
    for (const seen of this.#seen.values()) seen.heardAt = now;
  }

  #lose(presence: Presence): void {
    if (!this.#seen.delete(presence.id)) return;
    for (const listener of this.#goneListeners) listener(presence);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
