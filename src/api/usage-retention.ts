import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../platform/database/database.js';
import type { Logger } from '../platform/logger.js';

const dayMs = 24 * 60 * 60 * 1000;

/** Rows removed in one transaction, and the rest that others get before the next. */
const batchRows = 1_000;
const pauseMs = 100;
const intervalMs = 60 * 60 * 1000;

export interface RetentionOptions {
  readonly database: Pick<Database, 'query'>;
  readonly days: number;
  readonly logger: Logger;
  readonly rows?: number;
}

/**
 * Removes what is older than `days` from the ledger, a few rows at a time. The sums by hour stay.
 * @returns How many rows were removed; 0 where another process is at it.
 */
export async function removeOldUsage(options: RetentionOptions, signal: AbortSignal): Promise<number> {
  const { database, days, rows = batchRows } = options;
  const before = new Date(Date.now() - days * dayMs);
  for (let total = 0; ; ) {
    signal.throwIfAborted();
    const [answer] = await database.query<{ removed: number }>({
      name: 'remove-old-usage',
      text: 'SELECT remove_old_usage($1, $2) AS removed',
      values: [before, rows],
    });
    total += answer!.removed;
    if (answer!.removed < rows) return total;
    await sleep(pauseMs, undefined, { signal });
  }
}

/** Does that now and every hour. Returns how to stop. */
export function keepUsageFor(options: RetentionOptions): () => Promise<void> {
  const { logger } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const work = async () => {
    while (!signal.aborted) {
      try {
        const removed = await removeOldUsage(options, signal);
        if (removed > 0) logger.info({ removed }, 'removed usage that is older than it is kept');
      } catch (error) {
        if (!signal.aborted) logger.warn({ err: error }, 'old usage could not be removed yet');
      }
      await sleep(intervalMs, undefined, { signal, ref: false }).catch(() => {});
    }
  };
  const working = work();
  return async () => {
    stopping.abort();
    await working;
  };
}
