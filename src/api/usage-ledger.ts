import { abortable } from '../platform/abortable.js';
import type { Logger } from '../platform/logger.js';
import type { UsageEntry, UsageStore } from './usage-store.js';

export interface LedgerTiming {
  /** Entries gather for this long, so that a busy process writes many at once. */
  readonly gatherMs: number;
  /** The wait after a failed write; it doubles with each further one, up to `maxRetryMs`. */
  readonly retryMs: number;
  readonly maxRetryMs: number;
  readonly writeTimeoutMs: number;
}

const ledgerTiming: LedgerTiming = {
  gatherMs: 100,
  retryMs: 500,
  maxRetryMs: 10_000,
  writeTimeoutMs: 10_000,
};

/** Entries written in one statement. */
const maxBatch = 500;

export interface LedgerOptions {
  readonly store: UsageStore;
  readonly logger: Logger;
  /** Entries kept while the store is away; beyond it the oldest are lost, and a log line says how many. */
  readonly maxKept?: number;
  readonly timing?: Partial<LedgerTiming>;
}

/** Writes what requests cost, after they were answered: no client waits for it. */
export class UsageLedger {
  readonly #store: UsageStore;
  readonly #logger: Logger;
  readonly #maxKept: number;
  readonly #timing: LedgerTiming;
  #kept: UsageEntry[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #retryMs: number;

  constructor({ store, logger, maxKept = 50_000, timing }: LedgerOptions) {
    this.#store = store;
    this.#logger = logger;
    this.#maxKept = maxKept;
    this.#timing = { ...ledgerTiming, ...timing };
    this.#retryMs = this.#timing.retryMs;
  }

  record(entry: UsageEntry): void {
    this.#kept.push(entry);
    const excess = this.#kept.length - this.#maxKept;
    if (excess > 0) {
      this.#kept.splice(0, excess);
      this.#logger.error({ lost: excess }, 'usage was lost: the database has been away for too long');
    }
    this.#schedule(this.#timing.gatherMs);
  }

  /** Writes what is left; gives up after `graceMs` and says what is lost. */
  async close({ graceMs }: { graceMs: number }): Promise<void> {
    clearTimeout(this.#timer);
    const signal = AbortSignal.timeout(graceMs);
    try {
      while (this.#kept.length > 0 || this.#writing !== undefined) {
        await abortable(this.#writing ?? this.#write(), signal);
        if (this.#retryMs > this.#timing.retryMs) break;
      }
    } catch {
      // Only the time was up; what that means is told below.
    }
    clearTimeout(this.#timer);
    if (this.#kept.length > 0) {
      this.#logger.error({ lost: this.#kept.length }, 'usage was lost: the database is away');
    }
  }

  #schedule(delayMs: number): void {
    if (this.#timer !== undefined || this.#writing !== undefined) return;
    this.#timer = setTimeout(() => void this.#write(), delayMs).unref();
  }

  /** Writes one batch. Never rejects: a batch that was not written is kept. */
  #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#kept.slice(0, maxBatch);
    this.#writing = abortable(this.#store.add(batch), AbortSignal.timeout(this.#timing.writeTimeoutMs))
      .then(
        () => {
          const written = new Set(batch);
          this.#kept = this.#kept.filter((entry) => !written.has(entry));
          this.#retryMs = this.#timing.retryMs;
          return 0;
        },
        (error) => {
          this.#logger.warn({ err: error, kept: this.#kept.length }, 'usage could not be written yet');
          const delayMs = this.#retryMs;
          this.#retryMs = Math.min(this.#retryMs * 2, this.#timing.maxRetryMs);
          return delayMs;
        },
      )
      .then((delayMs) => {
        this.#writing = undefined;
        if (this.#kept.length > 0) this.#schedule(delayMs);
      });
    return this.#writing;
  }
}
