import type { Engine } from '../engine/engine.js';
import type { EncodeRequest, EngineEvent, GenerateRequest } from '../engine/request.js';

/** What the listener of a run may do to it while it hears an event. */
export interface RunControl {
  /** Ends one choice; its tokens may still come for a step. */
  cancelChoice(choice: number): void;
  /** Ends the run: nothing more is heard. What the engine still does for it is dropped. */
  finish(options?: { cancel: boolean }): void;
}

export type RunListener = (event: EngineEvent, control: RunControl) => void;

/** The engine gave up one request. */
export class RunFailed extends Error {
  override readonly name = 'RunFailed';
}

/**
 * The requests that the engine works on, each under an id of its own: a job that comes again, after its hold was
 * lost, never hears of its earlier run.
 */
export class EngineRuns {
  readonly #engine: Engine;
  readonly #heard = new Map<string, (event: EngineEvent) => void>();
  #count = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
    engine.onEvents((events) => {
      for (const event of events) this.#heard.get(event.id)?.(event);
    });
  }

  get size(): number {
    return this.#heard.size;
  }

  /**
   * Runs a request until `listener` finishes it.
   * @throws the signal's reason when it aborts, the engine then drops the request within a step; RunFailed when the
   * engine gives the request up; whatever the listener throws.
   */
  generate(request: Omit<GenerateRequest, 'id'>, signal: AbortSignal, listener: RunListener): Promise<void> {
    return this.#run((id) => this.#engine.generate({ ...request, id }), signal, listener);
  }

  /** As `generate`, for an encoder: resolves with the rows. `onAdmitted` is called when the first step begins. */
  async encode(
    request: Omit<EncodeRequest, 'id'>,
    signal: AbortSignal,
    onAdmitted: () => void,
  ): Promise<Float32Array> {
    let rows = new Float32Array();
    await this.#run(
      (id) => this.#engine.encode({ ...request, id }),
      signal,
      (event, control) => {
        if (event.type === 'admitted') onAdmitted();
        if (event.type !== 'encoded') return;
        rows = event.rows as Float32Array<ArrayBuffer>;
        control.finish();
      },
    );
    return rows;
  }

  async #run(start: (id: string) => void, signal: AbortSignal, listener: RunListener): Promise<void> {
    signal.throwIfAborted();
    const id = String(++this.#count);
    let abort = () => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const control: RunControl = {
          cancelChoice: (choice) => this.#engine.cancel(id, choice),
          finish: ({ cancel } = { cancel: false }) => {
            this.#heard.delete(id);
            if (cancel) this.#engine.cancel(id);
            resolve();
          },
        };
        this.#heard.set(id, (event) => {
          if (event.type === 'failed') return reject(new RunFailed(event.reason));
          if (event.type === 'cancelled') return reject(new RunFailed('the engine dropped it unasked'));
          try {
            listener(event, control);
          } catch (error) {
            this.#engine.cancel(id);
            this.#heard.delete(id);
            reject(error);
          }
        });
        abort = () => {
          this.#engine.cancel(id);
          this.#heard.delete(id);
          reject(signal.reason);
        };
        signal.addEventListener('abort', abort);
        start(id);
      });
    } finally {
      this.#heard.delete(id);
      signal.removeEventListener('abort', abort);
    }
  }
}
