import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../platform/config.js';
import type { Database } from '../platform/database/database.js';
import type { Logger } from '../platform/logger.js';

const dayMs = 24 * 60 * 60 * 1000;

/** Rows removed in one transaction, and the rest that others get before the next. */
const batchRows = 1_000;
const pauseMs = 100;
const intervalMs = 60 * 60 * 1000;

/** What is kept for a number of days. */
export type Kept = keyof Config['retentionDays'];

/** Each removes at most $2 rows from before $1 and says how many; what another process is at is left to it. */
const removals: Readonly<Record<Kept, string>> = {
  // The sums by hour stay.
  usage: 'SELECT remove_old_usage($1, $2) AS removed',
  // What was sent of a notice to webhooks goes with it.
  notices: removalFrom('notices'),
  audit: removalFrom('audit_entries'),
};

function removalFrom(table: 'notices' | 'audit_entries'): string {
  return `
    WITH removed AS (
      DELETE FROM ${table} WHERE id IN (
        SELECT id FROM ${table} WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
      ) RETURNING 1
    ) SELECT count(*)::int AS removed FROM removed`;
}

export interface RemovalOptions {
  readonly database: Pick<Database, 'query'>;
  readonly days: number;
  readonly rows?: number;
}

/** Removes what is older than `days`, a few rows at a time. Returns how many rows were removed. */
export async function removeOld(what: Kept, options: RemovalOptions, signal: AbortSignal): Promise<number> {
  const { database, days, rows = batchRows } = options;
  const before = new Date(Date.now() - days * dayMs);
  for (let total = 0; ; ) {
    signal.throwIfAborted();
    const [answer] = await database.query<{ removed: number }>({
      name: `remove-old-${what}`,
      text: removals[what],
      values: [before, rows],
    });
    total += answer!.removed;
    if (answer!.removed < rows) return total;
    await sleep(pauseMs, undefined, { signal });
  }
}

/** Does that for everything, now and every hour. Returns how to stop. */
export function keepFor(
  retentionDays: Config['retentionDays'],
  { database, logger }: { database: Pick<Database, 'query'>; logger: Logger },
): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const remove = async (what: Kept, days: number) => {
    try {
      const removed = await removeOld(what, { database, days }, signal);
      if (removed > 0) logger.info({ what, removed }, 'removed what is older than it is kept');
    } catch (error) {
      if (!signal.aborted) logger.warn({ what, err: error }, 'what is old could not be removed yet');
    }
  };
  const work = async () => {
    while (!signal.aborted) {
      for (const [what, days] of Object.entries(retentionDays)) await remove(what as Kept, days);
      await sleep(intervalMs, undefined, { signal, ref: false }).catch(() => {});
    }
  };
  const working = work();
  return async () => {
    stopping.abort();
    await working;
  };
}
