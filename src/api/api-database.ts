import type { Database } from '../platform/database/database.js';
import { type ModelStateStore, PrismaModelStates } from '../platform/model-registry/model-states.js';
import { type NoticeReader, PrismaNotices } from '../platform/notices/notices.js';
import { type IdempotencyStore, PostgresIdempotencyStore } from './idempotency-store.js';
import { type KeyStore, PrismaKeyStore } from './key-store.js';
import { type LimitStore, PostgresLimitStore } from './limit-store.js';
import { PostgresUsageReader, type UsageReader } from './usage-report.js';
import { PostgresUsageStore, type UsageStore } from './usage-store.js';

/** What an API process asks of the database. */
export interface ApiDatabase {
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  readonly usageReports: UsageReader;
  readonly limits: LimitStore;
  readonly idempotency: IdempotencyStore;
  readonly models: ModelStateStore;
  readonly notices: NoticeReader;
  /** Resolves when the database answers; rejects with the reason, or when `signal` aborts. */
  check(signal: AbortSignal): Promise<void>;
}

export function toApiDatabase(database: Database): ApiDatabase {
  return {
    keys: new PrismaKeyStore(database.client),
    usage: new PostgresUsageStore(database),
    usageReports: new PostgresUsageReader(database),
    limits: new PostgresLimitStore(database),
    idempotency: new PostgresIdempotencyStore(database),
    models: new PrismaModelStates(database.client),
    notices: new PrismaNotices(database.client),
    check: (signal) => database.check(signal),
  };
}
