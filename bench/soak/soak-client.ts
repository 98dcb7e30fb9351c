import type { Engine } from '../../src/engine/engine.js';
import type { EngineCounters, EngineEvent } from '../../src/engine/request.js';
import type { SoakRequest } from './draw-request.js';

/** How the requests of a run ended. */
export interface SoakOutcome {
  finished: number;
  /** Given up as a whole, by how far they had come when their client said so. */
  readonly cancelled: { waiting: number; prefill: number; decode: number };
  /** Choices that were given up one by one. */
  choicesCancelled: number;
  readonly failures: string[];
}

/** A request under way. */
interface Exchange extends SoakRequest {
  state: keyof SoakOutcome['cancelled'];
  tokens: number;
  /** Choices that are expected to go on. */
  readonly open: Set<number>;
  /** Whether the whole of it was cancelled: its end is then the engine's answer to that. */
  cancelled: boolean;
  readonly end: () => void;
}

/** Sends requests to an engine, a number of them at a time, hears their tokens and gives some up. */
export class SoakClient {
  readonly outcome: SoakOutcome = {
    finished: 0,
    cancelled: { waiting: 0, prefill: 0, decode: 0 },
    choicesCancelled: 0,
    failures: [],
  };
  readonly #engine: Engine;
  readonly #exchanges = new Map<string, Exchange>();
  #fences = 0;
  readonly #passed = new Map<string, () => void>();
  readonly #lost: Promise<never>;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#lost = new Promise((_, reject) => engine.onFailure(reject));
    this.#lost.catch(() => {});
    engine.onEvents((events) => {
      for (const event of events) this.#hear(event);
      this.#cancelWaiting();
    });
  }

  /**
   * Runs requests, `together` at a time, to their ends; `onEnd` is called after each.
   * @throws Error when the engine is lost.
   */
  async run(
    requests: Iterable<SoakRequest>,
    { together, onEnd }: { readonly together: number; readonly onEnd: () => void },
  ): Promise<void> {
    const source = requests[Symbol.iterator]();
    const serve = async () => {
      for (let next = source.next(); !next.done; next = source.next()) {
        await this.#exchange(next.value);
        onEnd();
      }
    };
    const served = Promise.all(Array.from({ length: together }, serve));
    // Once for all requests: each race leaves something behind for as long as the engine lives.
    await Promise.race([served, this.#lost]);
  }

  /** The engine's counters once it has taken in everything that was said to it. */
  async countersAtRest(): Promise<EngineCounters> {
    const id = `fence-${this.#fences++}`;
    const passed = new Promise<void>((resolve) => this.#passed.set(id, resolve));
    this.#engine.cancel(id);
    await Promise.race([passed, this.#lost]);
    return await this.#engine.counters();
  }

  #exchange(planned: SoakRequest): Promise<void> {
    const { request, cancellation } = planned;
    return new Promise((resolve) => {
      const exchange: Exchange = {
        ...planned,
        state: 'waiting',
        tokens: 0,
        open: new Set(Array.from({ length: request.choices }, (_, index) => index)),
        cancelled: false,
        end: () => {
          this.#exchanges.delete(request.id);
          resolve();
        },
      };
      this.#exchanges.set(request.id, exchange);
      this.#engine.generate(request);
      if (cancellation?.when === 'sent') this.#cancel(exchange);
    });
  }

  #hear(event: EngineEvent): void {
    this.#passed.get(event.id)?.();
    const exchange = this.#exchanges.get(event.id);
    if (!exchange) return;
    switch (event.type) {
      case 'admitted':
        exchange.state = 'prefill';
        if (exchange.cancellation?.when === 'admitted') this.#cancel(exchange);
        break;
      case 'token':
        exchange.state = 'decode';
        exchange.tokens++;
        if (event.finish !== undefined) this.#finish(exchange, event.choice);
        else if (
          exchange.cancellation?.when === 'decoding' &&
          exchange.cancellation.tokens === exchange.tokens
        ) {
          this.#cancel(exchange);
        }
        break;
      case 'cancelled':
        exchange.end();
        break;
      case 'failed':
        this.outcome.failures.push(event.reason);
        exchange.end();
        break;
      case 'encoded':
        throw new Error('A decoder encoded. This is a bug.');
      default:
        event satisfies never;
    }
  }

  #cancelWaiting(): void {
    for (const exchange of this.#exchanges.values()) {
      const { cancellation, state } = exchange;
      if (cancellation?.when === 'waiting' && state === 'waiting' && !exchange.cancelled) {
        this.#cancel(exchange);
      }
    }
  }

  #cancel(exchange: Exchange): void {
    const { request, cancellation, open, state } = exchange;
    const choice = cancellation?.choice;
    if (choice === undefined) {
      exchange.cancelled = true;
      this.outcome.cancelled[state]++;
      this.#engine.cancel(request.id);
    } else if (open.has(choice)) {
      this.outcome.choicesCancelled++;
      this.#engine.cancel(request.id, choice);
      this.#finish(exchange, choice);
    }
  }

  #finish(exchange: Exchange, choice: number): void {
    exchange.open.delete(choice);
    if (exchange.open.size > 0 || exchange.cancelled) return;
    this.outcome.finished++;
    exchange.end();
  }
}
