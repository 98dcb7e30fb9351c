import type { Catalogue } from '../models/catalogue.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import type { Admission } from './admit.js';
import type { Idempotency } from './idempotency.js';
import type { LimitGate } from './limit-gate.js';
import type { ApiMetrics } from './metrics.js';
import type { Replies } from './replies.js';
import type { UsageLedger } from './usage-ledger.js';

/** What the routes of the two operations work with. */
export interface Services {
  readonly apiId: string;
  readonly catalogue: Catalogue;
  readonly backplane: Backplane;
  readonly admission: Admission;
  readonly limits: LimitGate;
  readonly idempotency: Idempotency;
  readonly replies: Replies;
  readonly ledger: UsageLedger;
  readonly metrics: ApiMetrics;
  readonly requestTimeoutMs: number;
  /** Silence on a stream after which a comment is sent. */
  readonly keepAliveMs: number;
}
