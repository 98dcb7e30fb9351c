import type { Engine } from '../engine/engine.js';
import type { EngineCounters } from '../engine/request.js';

/** How long counters are good for. A little less than presence lasts, so that each announcement asks for the next. */
const freshMs = 900;

/**
 * An engine's counters for those who cannot wait for them: what it last said. It is asked again when somebody looks,
 * at most about once a second, and never while an answer is still due, as that of a long step is.
 */
export class EngineReport {
  readonly #engine: Pick<Engine, 'counters'>;
  /** Milliseconds that only ever grow. */
  readonly #now: () => number;
  #latest: EngineCounters | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #isAsking = false;

  constructor(engine: Pick<Engine, 'counters'>, now: () => number = () => performance.now()) {
    this.#engine = engine;
    this.#now = now;
  }

  /** Undefined until the engine has answered for the first time. */
  get latest(): EngineCounters | undefined {
    if (!this.#isAsking && this.#now() - this.#askedAt >= freshMs) void this.#ask();
    return this.#latest;
  }

  async #ask(): Promise<void> {
    this.#askedAt = this.#now();
    this.#isAsking = true;
    try {
      this.#latest = await this.#engine.counters();
    } catch {
      // The engine is gone, which the worker hears from it; there is nothing newer to say.
    } finally {
      this.#isAsking = false;
    }
  }
}
