import { setImmediate } from 'node:timers/promises';
import type { EngineEvent } from './request.js';

/** An engine as its loop sees it. */
export interface StepEngine {
  /** Whether a step would do anything. */
  readonly busy: boolean;
  /** @throws Error when the engine cannot go on. */
  step(): Promise<EngineEvent[]>;
}

export interface EngineLoopListeners {
  onEvents(events: readonly EngineEvent[]): void;
  /** The engine cannot go on; the loop has ended. */
  onFailure(error: unknown): void;
}

/**
 * Steps an engine for as long as it is busy. Between steps the event loop turns once, so that requests and
 * cancellations that have arrived are seen by the next step. At rest nothing runs, not even a timer.
 */
export class EngineLoop {
  readonly #engine: StepEngine;
  readonly #listeners: EngineLoopListeners;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(engine: StepEngine, listeners: EngineLoopListeners) {
    this.#engine = engine;
    this.#listeners = listeners;
  }

  /** To be called after each request or cancellation. */
  wake(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Resolves when the step that is under way, if any, is over; no other begins. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    try {
      await setImmediate();
      while (this.#engine.busy && !this.#closed) {
        const events = await this.#engine.step();
        if (events.length > 0) this.#listeners.onEvents(events);
        await setImmediate();
      }
    } catch (error) {
      this.#closed = true;
      this.#listeners.onFailure(error);
    }
  }
}
