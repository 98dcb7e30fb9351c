import type { Database } from '../platform/database/database.js';
import { type KeyStore, PrismaKeyStore } from './key-store.js';
import { type LimitStore, PostgresLimitStore } from './limit-store.js';
import { PrismaUsageStore, type UsageStore } from './usage-store.js';

/** What an API process asks of the database. */
export interface ApiDatabase {
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  readonly limits: LimitStore;
  /** Resolves when the database answers; rejects with the reason, or when `signal` aborts. */
  check(signal: AbortSignal): Promise<void>;
}

export function toApiDatabase(database: Database): ApiDatabase {
  return {
    keys: new PrismaKeyStore(database.client),
    usage: new PrismaUsageStore(database.client),
    limits: new PostgresLimitStore(database),
    check: (signal) => database.check(signal),
  };
}
