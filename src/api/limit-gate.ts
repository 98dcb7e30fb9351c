import { ServiceError } from '../contract/errors.js';
import { abortable } from '../platform/abortable.js';
import type { Logger } from '../platform/logger.js';
import type { EndedRequest, LimitedRequest, LimitLane, LimitStore, LimitVerdict } from './limit-store.js';

export interface LimitTiming {
  /** A client waits: when the store takes longer, it is away. */
  readonly reserveTimeoutMs: number;
  readonly settleTimeoutMs: number;
  /** The wait before settling is tried again. */
  readonly retryMs: number;
  /** How often this process says that it is alive, and looks for others that are not. */
  readonly beatMs: number;
  /** The silence after which a process is dead. */
  readonly silenceMs: number;
}

const limitTiming: LimitTiming = {
  reserveTimeoutMs: 5_000,
  settleTimeoutMs: 10_000,
  retryMs: 1_000,
  beatMs: 5_000,
  silenceMs: 30_000,
};

/** Requests decided in one call: the counter's row is locked meanwhile. */
const maxBatch = 250;

export interface LimitGateOptions {
  readonly apiId: string;
  readonly store: LimitStore;
  readonly logger: Logger;
  readonly timing?: Partial<LimitTiming>;
}

interface Waiting {
  readonly lane: LimitLane;
  readonly request: LimitedRequest;
  readonly resolve: (verdict: LimitVerdict) => void;
  readonly reject: (error: Error) => void;
}

interface Ended extends EndedRequest {
  readonly accountId: string;
  readonly model: string;
}

/** What is to be done for one account and model: at most one call of each kind at a time. */
interface Line<T> {
  queue: T[];
  working: boolean;
}

/**
 * Lets requests through that are within their limits. Requests of one account and model that come while a call is
 * under way go together into the next one, and so do those that end: a hot account costs a few calls, not one for
 * each request.
 */
export class LimitGate {
  readonly #options: LimitGateOptions;
  readonly #timing: LimitTiming;
  readonly #entering = new Map<string, Line<Waiting>>();
  readonly #leaving = new Map<string, Line<Ended>>();
  readonly #idle = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> | undefined;
  /** Since when the store has heard of this process without a gap. */
  #steadySince = Number.POSITIVE_INFINITY;
  #closing = false;

  constructor(options: LimitGateOptions) {
    this.#options = options;
    this.#timing = { ...limitTiming, ...options.timing };
  }

  /** Makes this process known. To be called before the first request. */
  async open(): Promise<void> {
    await this.#beat();
    this.#timer = setInterval(() => {
      this.#beating ??= this.#beat().finally(() => {
        this.#beating = undefined;
      });
    }, this.#timing.beatMs).unref();
  }

  /**
   * Checks a request against all limits at once; where it is admitted it is counted, and its tokens are reserved until
   * {@link settle}.
   * @throws ServiceError overloaded when the store is away; nothing stays reserved then.
   */
  reserve(lane: LimitLane, request: LimitedRequest): Promise<LimitVerdict> {
    return new Promise((resolve, reject) => {
      const key = keyOf(lane);
      const line = lineOf(this.#entering, key);
      line.queue.push({ lane, request, resolve, reject });
      if (!line.working) void this.#enter(key, line);
    });
  }

  /** A request that was admitted has ended: what it reserved becomes what it used. Returns at once. */
  settle(lane: Pick<LimitLane, 'accountId' | 'model'>, { id, tokens }: EndedRequest): void {
    const key = keyOf(lane);
    const line = lineOf(this.#leaving, key);
    line.queue.push({ id, tokens, accountId: lane.accountId, model: lane.model });
    if (!line.working) void this.#leave(key, line);
  }

  /** Settles what has ended, for at most `graceMs`. What is not settled by then is swept by another process. */
  async close({ graceMs }: { graceMs: number }): Promise<void> {
    clearInterval(this.#timer);
    this.#closing = true;
    const signal = AbortSignal.timeout(graceMs);
    try {
      await abortable(this.#settled(), signal);
      await this.#beating;
      await abortable(this.#options.store.leave(this.#options.apiId), signal);
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'reservations are left to be swept');
    }
  }

  /** Resolves when nothing waits to be settled. */
  #settled(): Promise<void> {
    if (this.#leaving.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.add(resolve));
  }

  async #enter(key: string, line: Line<Waiting>): Promise<void> {
    const { store, apiId } = this.#options;
    line.working = true;
    while (line.queue.length > 0) {
      const batch = line.queue.splice(0, maxBatch);
      const { lane } = batch[0]!;
      try {
        const deciding = store.reserve(
          { ...lane, apiId },
          batch.map(({ request }) => request),
        );
        const verdicts = await abortable(deciding, AbortSignal.timeout(this.#timing.reserveTimeoutMs));
        for (const [index, { resolve }] of batch.entries()) resolve(verdicts[index]!);
      } catch (cause) {
        for (const { request, reject } of batch) {
          reject(new ServiceError('overloaded', undefined, { cause }));
          // The store may have counted them all the same: its answer may be what was lost.
          this.settle(lane, { id: request.id, tokens: 0 });
        }
      }
    }
    line.working = false;
    this.#entering.delete(key);
  }

  async #leave(key: string, line: Line<Ended>): Promise<void> {
    const { store, logger } = this.#options;
    line.working = true;
    while (line.queue.length > 0) {
      const batch = line.queue.slice(0, maxBatch);
      try {
        const settling = store.settle(batch[0]!, batch);
        await abortable(settling, AbortSignal.timeout(this.#timing.settleTimeoutMs));
        line.queue.splice(0, batch.length);
      } catch (error) {
        logger.warn({ err: error, waiting: line.queue.length }, 'reservations could not be settled yet');
        if (this.#closing) break;
        await new Promise((resolve) => setTimeout(resolve, this.#timing.retryMs).unref());
      }
    }
    line.working = false;
    this.#leaving.delete(key);
    if (this.#leaving.size > 0) return;
    for (const resolve of this.#idle) resolve();
    this.#idle.clear();
  }

  /** Says that this process is alive, and sweeps what dead ones left. Never rejects. */
  async #beat(): Promise<void> {
    const { store, apiId, logger } = this.#options;
    try {
      await abortable(store.beat(apiId), AbortSignal.timeout(this.#timing.beatMs));
      this.#steadySince = Math.min(this.#steadySince, performance.now());
      // After an outage of the store everyone seems dead for a moment.
      if (performance.now() - this.#steadySince < this.#timing.silenceMs) return;
      const swept = await store.sweep(this.#timing.silenceMs);
      if (swept > 0) logger.info({ swept }, 'gave back what a process that died had reserved');
    } catch (error) {
      this.#steadySince = Number.POSITIVE_INFINITY;
      logger.debug({ err: error }, 'the database does not hear that this process is alive');
    }
  }
}

function keyOf({ accountId, model }: Pick<LimitLane, 'accountId' | 'model'>): string {
  return `${accountId} ${model}`;
}

function lineOf<T>(lines: Map<string, Line<T>>, key: string): Line<T> {
  let line = lines.get(key);
  if (line === undefined) {
    line = { queue: [], working: false };
    lines.set(key, line);
  }
  return line;
}
