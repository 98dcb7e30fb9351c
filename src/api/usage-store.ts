import type { Database } from '../platform/database/database.js';

/** What one request cost, however it ended. */
export interface UsageEntry {
  /** The id of the reply. */
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly operation: 'chat' | 'rerank';
  /** The caller's own `user` field. */
  readonly endUser: string | null;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  /** `stop`, `length`, `tool_calls`, `ranked`, `cancelled`, or the error's kind. */
  readonly finishReason: string;
  /** The HTTP status that was sent; 499 when the client had gone. */
  readonly status: number;
  readonly queueMs: number | null;
  readonly firstTokenMs: number | null;
  readonly totalMs: number;
  readonly createdAt: Date;
}

export interface UsageStore {
  /** Adds entries; those whose id is known are left as they are. */
  add(entries: readonly UsageEntry[]): Promise<void>;
}

/** The ledger in Postgres. */
export class PrismaUsageStore implements UsageStore {
  readonly #client: Pick<Database['client'], 'usageRecord'>;

  constructor(client: Pick<Database['client'], 'usageRecord'>) {
    this.#client = client;
  }

  async add(entries: readonly UsageEntry[]): Promise<void> {
    await this.#client.usageRecord.createMany({ data: [...entries], skipDuplicates: true });
  }
}
