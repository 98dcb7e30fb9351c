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

/**
 * One row for each entry, all in one statement that is prepared once. Prisma would plan the same statement anew each
 * time, for a quarter of what this process has to do for a request.
 */
const addEntries = `
  INSERT INTO usage_records (
    id, account_id, key_id, model, operation, end_user, prompt_tokens, completion_tokens, cached_tokens,
    finish_reason, status, queue_ms, first_token_ms, total_ms, created_at
  )
  SELECT
    "id", "accountId", "keyId", "model", "operation", "endUser", "promptTokens", "completionTokens", "cachedTokens",
    "finishReason", "status", "queueMs", "firstTokenMs", "totalMs", "createdAt"
  FROM json_to_recordset($1::json) AS entry (
    "id" text, "accountId" uuid, "keyId" uuid, "model" text, "operation" text, "endUser" text, "promptTokens" int,
    "completionTokens" int, "cachedTokens" int, "finishReason" text, "status" int, "queueMs" float8,
    "firstTokenMs" float8, "totalMs" float8, "createdAt" timestamptz
  )
  ON CONFLICT (id) DO NOTHING`;

/** The ledger in Postgres. */
export class PostgresUsageStore implements UsageStore {
  readonly #database: Pick<Database, 'query'>;

  constructor(database: Pick<Database, 'query'>) {
    this.#database = database;
  }

  async add(entries: readonly UsageEntry[]): Promise<void> {
    await this.#database.query({ name: 'add-usage', text: addEntries, values: [JSON.stringify(entries)] });
  }
}
