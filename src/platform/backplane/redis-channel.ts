import { once } from 'node:events';
import type { Redis } from 'ioredis';
import type { Logger } from '../logger.js';
import type { Channel, Subscription } from './backplane.js';
import { Subscriptions } from './subscriptions.js';

const subscribeTimeoutMs = 5_000;

/** Redis pub/sub: messages go out on the connection that commands use, and come in on one of their own. */
export class RedisChannel implements Channel {
  readonly #publisher: Redis;
  readonly #subscriber: Redis;
  readonly #subscriptions: Subscriptions;

  /** @param subscriber A connection for this alone, with `autoResubscribe` off. */
  constructor(options: { publisher: Redis; subscriber: Redis; logger: Logger }) {
    this.#publisher = options.publisher;
    this.#subscriber = options.subscriber;
    this.#subscriptions = new Subscriptions(options.logger);
    this.#subscriber.on('message', (name, message) => this.#subscriptions.deliver(name, message));
    // Also what a subscription that was under way when the connection broke relies on.
    this.#subscriber.on('ready', () => {
      const { names } = this.#subscriptions;
      if (names.length > 0) this.#subscriber.subscribe(...names).catch(() => {});
    });
  }

  async publish(name: string, message: string): Promise<void> {
    await this.#publisher.publish(name, message);
  }

  async subscribe(name: string, listener: (message: string) => void): Promise<Subscription> {
    this.#subscriptions.add(name, listener);
    const close = async () => {
      if (this.#subscriptions.remove(name, listener))
        await this.#subscriber.unsubscribe(name).catch(() => {});
    };
    try {
      await this.#listen(name, AbortSignal.timeout(subscribeTimeoutMs));
      return { close };
    } catch (error) {
      await close();
      throw error;
    }
  }

  async #listen(name: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      if (this.#subscriber.status !== 'ready') await once(this.#subscriber, 'ready', { signal });
      try {
        await this.#subscriber.subscribe(name);
        return;
      } catch (error) {
        // The connection broke in between: again when it is back.
        if (this.#subscriber.status === 'ready') throw error;
      }
    }
  }
}
