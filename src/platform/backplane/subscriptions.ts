import type { Logger } from '../logger.js';

type Listener = (message: string) => void;

/** Who listens to which channel in this process. A server is told of the first listener and of the last one's end. */
export class Subscriptions {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get names(): string[] {
    return [...this.#listeners.keys()];
  }

  add(name: string, listener: Listener): void {
    const known = this.#listeners.get(name);
    if (known) known.add(listener);
    else this.#listeners.set(name, new Set([listener]));
  }

  /** @returns True when nobody listens to the channel any more. */
  remove(name: string, listener: Listener): boolean {
    const known = this.#listeners.get(name);
    if (!known?.delete(listener) || known.size > 0) return false;
    return this.#listeners.delete(name);
  }

  /** A listener that throws must not cost the others, nor the connection, their message. */
  deliver(name: string, message: string): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        listener(message);
      } catch (error) {
        this.#logger.error({ err: error, channel: name }, 'a channel listener failed');
      }
    }
  }
}
