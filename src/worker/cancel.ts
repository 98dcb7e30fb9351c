import { controlSchema } from '../contract/control.js';
import { controlChannel } from '../contract/names.js';
import type { Channel, Subscription } from '../platform/backplane/backplane.js';
import type { Logger } from '../platform/logger.js';
import type { Clock } from './clock.js';

export interface CancellationsOptions {
  readonly channel: Channel;
  readonly modelId: string;
  /** Cancels a request that is held; false when it is not. */
  readonly cancelHeld: (id: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long an id is remembered that is not held, and how many at most. */
  readonly rememberMs: number;
  readonly maxRemembered?: number;
}

/**
 * Hears which requests their clients have given up. One that is not held is remembered for a while: the job may be
 * on its way here, from the queue or from a worker that died.
 */
export class Cancellations {
  readonly #options: Required<CancellationsOptions>;
  /** Times by id, oldest first. */
  readonly #remembered = new Map<string, number>();
  #subscription: Subscription | undefined;

  private constructor(options: CancellationsOptions) {
    this.#options = { maxRemembered: 10_000, ...options };
  }

  static async listen(options: CancellationsOptions): Promise<Cancellations> {
    const cancellations = new Cancellations(options);
    cancellations.#subscription = await options.channel.subscribe(
      controlChannel(options.modelId),
      (message) => cancellations.#hear(message),
    );
    return cancellations;
  }

  /** Whether a request was given up before it came; it is forgotten by that. */
  take(id: string): boolean {
    this.#forgetOld();
    return this.#remembered.delete(id);
  }

  get remembered(): number {
    return this.#remembered.size;
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }

  #hear(message: string): void {
    const control = parseControl(message);
    if (!control.success) {
      this.#options.logger.error({ err: control.error }, 'a control message cannot be read');
      return;
    }
    const { id } = control.data;
    if (this.#options.cancelHeld(id)) return;
    this.#remembered.delete(id);
    this.#remembered.set(id, this.#options.clock.now());
    this.#forgetOld();
  }

  #forgetOld(): void {
    const { clock, rememberMs, maxRemembered } = this.#options;
    const oldest = clock.now() - rememberMs;
    for (const [id, time] of this.#remembered) {
      if (time >= oldest && this.#remembered.size <= maxRemembered) return;
      this.#remembered.delete(id);
    }
  }
}

function parseControl(message: string) {
  try {
    return controlSchema.safeParse(JSON.parse(message));
  } catch {
    return controlSchema.safeParse(undefined);
  }
}
