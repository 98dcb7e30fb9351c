import type { Database } from '../platform/database/database.js';

/** A request that names itself. */
export interface NamedRequest {
  readonly accountId: string;
  readonly key: string;
  /** SHA-256 of what is asked, hexadecimal. */
  readonly request: string;
  /** The process that answers it. */
  readonly apiId: string;
}

export type Claim =
  /** Nobody has answered it, or is about to: this process is to. */
  | { readonly state: 'first' }
  | { readonly state: 'running' }
  | { readonly state: 'answered'; readonly status: number; readonly body: string }
  /** The key was sent with another request. */
  | { readonly state: 'other' };

export interface IdempotencyStore {
  /** @param takeOverMs After this long an answer that is still being made is given up on. */
  claim(request: NamedRequest, takeOverMs: number): Promise<Claim>;
  keep(request: NamedRequest, answer: { status: number; body: string }): Promise<void>;
  /** The first request has no answer that is worth keeping: the next one is the first. */
  release(request: NamedRequest): Promise<void>;
  /** What there is of an account: its keys, and the bytes of their answers. */
  held(accountId: string): Promise<{ keys: number; bytes: number }>;
  /** Removes answers that are kept no longer, at most `rows`; returns how many. */
  removeOld(rows: number): Promise<number>;
}

const keptFor = "interval '24 hours'";
/** The silence after which a process is not waited for. */
const silence = "interval '15 seconds'";

const claimKey = `
  INSERT INTO idempotent_answers AS a (account_id, key, request, api_id, created_at)
  VALUES ($1, $2, $3, $4, clock_timestamp())
  ON CONFLICT (account_id, key) DO UPDATE SET
    request = excluded.request, api_id = excluded.api_id, created_at = excluded.created_at,
    status = NULL, body = NULL
  WHERE a.created_at < clock_timestamp() - ${keptFor}
    OR a.status IS NULL AND (
      a.created_at < clock_timestamp() - $5 * interval '1 millisecond'
      OR NOT EXISTS (
        SELECT FROM api_processes p WHERE p.id = a.api_id AND p.seen_at > clock_timestamp() - ${silence}
      )
    )
  RETURNING true`;

/** Answers in Postgres. */
export class PostgresIdempotencyStore implements IdempotencyStore {
  readonly #database: Pick<Database, 'query'>;

  constructor(database: Pick<Database, 'query'>) {
    this.#database = database;
  }

  async claim({ accountId, key, request, apiId }: NamedRequest, takeOverMs: number): Promise<Claim> {
    const mine = await this.#database.query({
      name: 'claim-idempotency-key',
      text: claimKey,
      values: [accountId, key, request, apiId, takeOverMs],
    });
    if (mine.length > 0) return { state: 'first' };
    const [found] = await this.#database.query<{ request: string; status: number | null; body: string }>({
      name: 'read-idempotent-answer',
      text: 'SELECT request, status, body FROM idempotent_answers WHERE account_id = $1 AND key = $2',
      values: [accountId, key],
    });
    // It was released in between: the next claim finds out.
    if (found === undefined) return { state: 'running' };
    if (found.request !== request) return { state: 'other' };
    return found.status === null
      ? { state: 'running' }
      : { state: 'answered', status: found.status, body: found.body };
  }

  async keep(
    { accountId, key, request, apiId }: NamedRequest,
    { status, body }: { status: number; body: string },
  ): Promise<void> {
    await this.#database.query({
      name: 'keep-idempotent-answer',
      text: `UPDATE idempotent_answers SET status = $5, body = $6
        WHERE account_id = $1 AND key = $2 AND request = $3 AND api_id = $4 AND status IS NULL`,
      values: [accountId, key, request, apiId, status, body],
    });
  }

  async release({ accountId, key, request, apiId }: NamedRequest): Promise<void> {
    await this.#database.query({
      name: 'release-idempotency-key',
      text: `DELETE FROM idempotent_answers
        WHERE account_id = $1 AND key = $2 AND request = $3 AND api_id = $4 AND status IS NULL`,
      values: [accountId, key, request, apiId],
    });
  }

  async held(accountId: string): Promise<{ keys: number; bytes: number }> {
    const [held] = await this.#database.query<{ keys: number; bytes: number }>({
      name: 'count-idempotent-answers',
      text: `SELECT count(*)::float8 AS keys, coalesce(sum(octet_length(body)), 0)::float8 AS bytes
        FROM idempotent_answers WHERE account_id = $1`,
      values: [accountId],
    });
    return held!;
  }

  async removeOld(rows: number): Promise<number> {
    const removed = await this.#database.query({
      name: 'remove-idempotent-answers',
      text: `DELETE FROM idempotent_answers WHERE (account_id, key) IN (
          SELECT account_id, key FROM idempotent_answers WHERE created_at < clock_timestamp() - ${keptFor}
          LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING true`,
      values: [rows],
    });
    return removed.length;
  }
}
