import type { Backplane } from '../platform/backplane/backplane.js';

/** For how long a count is believed. */
const freshMs = 200;

/**
 * How many jobs wait for one model, without asking the queue at every request: between two counts it adds what this
 * process has enqueued itself.
 */
export class QueueDepth {
  readonly #backplane: Pick<Backplane, 'queue'>;
  readonly #model: string;
  #counted = 0;
  #added = 0;
  #countedAt = Number.NEGATIVE_INFINITY;
  #counting: Promise<void> | undefined;

  constructor({ backplane, model }: { backplane: Pick<Backplane, 'queue'>; model: string }) {
    this.#backplane = backplane;
    this.#model = model;
  }

  /** A job is about to be enqueued. */
  add(): void {
    this.#added++;
  }

  /**
   * Whether at least `limit` jobs wait. A number that is only guessed never says so.
   * @throws Error when the queue cannot be asked.
   */
  async reaches(limit: number): Promise<boolean> {
    if (performance.now() - this.#countedAt > freshMs) await this.#count();
    if (this.#counted + this.#added < limit) return false;
    await this.#count();
    return this.#counted + this.#added >= limit;
  }

  /** Requests that come while the queue is being asked share its answer. */
  #count(): Promise<void> {
    this.#counting ??= this.#ask().finally(() => {
      this.#counting = undefined;
    });
    return this.#counting;
  }

  async #ask(): Promise<void> {
    const addedBefore = this.#added;
    this.#counted = await this.#backplane.queue(this.#model).depth();
    this.#added -= addedBefore;
    this.#countedAt = performance.now();
  }
}
