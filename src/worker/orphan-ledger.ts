import type { Spent } from '../contract/frame.js';
import type { Job } from '../contract/job.js';
import type { Database } from '../platform/database/database.js';
import type { Logger } from '../platform/logger.js';
import type { Clock } from './clock.js';

/** Longer than it takes to learn that an API process has died: what it was told last may be written nowhere. */
const rememberMs = 15_000;
const maxRemembered = 10_000;

/** A request that this worker is done with, and what it cost. */
export interface DoneRequest {
  readonly job: Job;
  readonly spent: Spent;
}

export interface OrphanLedgerOptions {
  readonly client: Pick<Database['client'], 'usageRecord'>;
  /** Whether an API process is known to be dead. */
  readonly isGone: (apiId: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Writes what requests cost whose API process died before it could. A row that is there already stays as it is: a
 * request is counted once, whoever counts it.
 */
export class OrphanLedger {
  readonly #options: OrphanLedgerOptions;
  /** Oldest first. */
  readonly #done = new Map<string, DoneRequest & { readonly at: number }>();
  readonly #writing = new Set<Promise<void>>();

  constructor(options: OrphanLedgerOptions) {
    this.#options = options;
  }

  /** Takes note of a request that has ended here. */
  add(request: DoneRequest): void {
    const { isGone, clock } = this.#options;
    if (isGone(request.job.replyTo)) {
      this.#write([request]);
      return;
    }
    const at = clock.now();
    this.#done.set(request.job.id, { ...request, at });
    for (const [id, oldest] of this.#done) {
      if (this.#done.size <= maxRemembered && at - oldest.at <= rememberMs) break;
      this.#done.delete(id);
    }
  }

  /** Writes the last requests of an API process that has gone. */
  apiGone(apiId: string): void {
    const orphans = [...this.#done.values()].filter(({ job }) => job.replyTo === apiId);
    for (const { job } of orphans) this.#done.delete(job.id);
    this.#write(orphans);
  }

  /** Resolves when everything is written, or could not be. */
  async close(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #write(requests: readonly DoneRequest[]): void {
    const data = requests.flatMap((request) => this.#toRow(request));
    if (data.length === 0) return;
    const { client, logger } = this.#options;
    const writing = client.usageRecord.createMany({ data, skipDuplicates: true }).then(
      ({ count }) => {
        logger.info({ requests: count }, 'wrote what requests cost whose API process is gone');
      },
      (error) => logger.error({ err: error, lost: data.length }, 'usage of a dead API process was lost'),
    );
    this.#writing.add(writing);
    void writing.finally(() => this.#writing.delete(writing));
  }

  #toRow({ job, spent }: DoneRequest) {
    // A job of an older version says nothing of its caller.
    if (job.caller === undefined) return [];
    return [
      {
        id: job.id,
        ...job.caller,
        model: job.model,
        operation: job.kind,
        ...spent,
        finishReason: 'lost',
        status: 499,
        totalMs: Math.max(0, this.#options.clock.now() - job.enqueuedAt),
        createdAt: new Date(job.enqueuedAt),
      },
    ];
  }
}
