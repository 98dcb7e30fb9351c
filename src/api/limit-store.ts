import { type LimitName, type Limits, limitNames } from '../contract/limits.js';
import type { Database } from '../platform/database/database.js';

/** Requests that are counted together: of one account, to one model. */
export interface LimitLane {
  readonly accountId: string;
  readonly model: string;
  readonly operation: 'chat' | 'rerank';
  /** The model's own limits, for where the account has none. */
  readonly defaults: Limits;
}

/** What a request takes from its limits, and what the ledger would need should this process die. */
export interface LimitedRequest {
  readonly id: string;
  readonly keyId: string;
  readonly endUser: string | null;
  /** The most that it is likely to use. */
  readonly tokens: number;
  readonly images: number;
}

export interface Budget {
  readonly limit: number;
  readonly remaining: number;
}

export interface LimitVerdict {
  /** The limit that the request would pass; undefined when it was admitted and its tokens are reserved. */
  readonly refused: LimitName | undefined;
  /** Of this minute; undefined when there is no such limit. */
  readonly requests: Budget | undefined;
  readonly tokens: Budget | undefined;
  /** When this was decided, by the clock of the database. */
  readonly at: Date;
}

/** A request that ended, and the tokens it used. */
export interface EndedRequest {
  readonly id: string;
  readonly tokens: number;
}

export interface LimitStore {
  /** Checks and counts requests, atomically and in their order. */
  reserve(lane: LimitLane & { apiId: string }, requests: readonly LimitedRequest[]): Promise<LimitVerdict[]>;
  settle(lane: Pick<LimitLane, 'accountId' | 'model'>, ended: readonly EndedRequest[]): Promise<void>;
  /** Says that an API process is alive. */
  beat(apiId: string): Promise<void>;
  /** An API process ends, and holds nothing any more. */
  leave(apiId: string): Promise<void>;
  /** Gives back what processes held that have been silent for `silenceMs`; returns how many requests that was. */
  sweep(silenceMs: number): Promise<number>;
}

interface VerdictRow {
  readonly refused: LimitName | null;
  readonly rpm: number | null;
  readonly requests_left: number | null;
  readonly tpm: number | null;
  readonly tokens_left: number | null;
  readonly at: Date;
}

/** Counters in Postgres; the functions are in prisma/migrations. */
export class PostgresLimitStore implements LimitStore {
  readonly #database: Pick<Database, 'query'>;
  readonly #now: () => Date | null;

  /** @param options.now The time to count by; null, the default, is the database's clock. */
  constructor(database: Pick<Database, 'query'>, options: { now?: () => Date | null } = {}) {
    this.#database = database;
    this.#now = options.now ?? (() => null);
  }

  async reserve(
    lane: LimitLane & { apiId: string },
    requests: readonly LimitedRequest[],
  ): Promise<LimitVerdict[]> {
    const rows = await this.#database.query<VerdictRow>({
      name: 'reserve_limits',
      text: 'SELECT * FROM reserve_limits($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
      values: [
        lane.accountId,
        lane.model,
        lane.operation,
        lane.apiId,
        this.#now(),
        limitNames.map((name) => lane.defaults[name] ?? null),
        requests.map(({ id }) => id),
        requests.map(({ keyId }) => keyId),
        requests.map(({ endUser }) => endUser),
        requests.map(({ tokens }) => tokens),
        requests.map(({ images }) => images),
      ],
    });
    return rows.map((row) => ({
      refused: row.refused ?? undefined,
      requests: budget(row.rpm, row.requests_left),
      tokens: budget(row.tpm, row.tokens_left),
      at: row.at,
    }));
  }

  async settle(
    { accountId, model }: Pick<LimitLane, 'accountId' | 'model'>,
    ended: readonly EndedRequest[],
  ): Promise<void> {
    await this.#database.query({
      name: 'settle_limits',
      text: 'SELECT settle_limits($1, $2, $3, $4)',
      values: [accountId, model, ended.map(({ id }) => id), ended.map(({ tokens }) => tokens)],
    });
  }

  async beat(apiId: string): Promise<void> {
    await this.#database.query({
      name: 'beat',
      text: `INSERT INTO api_processes (id, seen_at) VALUES ($1, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`,
      values: [apiId],
    });
  }

  async leave(apiId: string): Promise<void> {
    await this.#database.query({
      name: 'leave',
      text: 'DELETE FROM api_processes WHERE id = $1',
      values: [apiId],
    });
  }

  async sweep(silenceMs: number): Promise<number> {
    const [row] = await this.#database.query<{ swept: number }>({
      name: 'sweep_limits',
      text: "SELECT sweep_limits($1 * interval '1 millisecond') AS swept",
      values: [silenceMs],
    });
    return row!.swept;
  }
}

function budget(limit: number | null, remaining: number | null): Budget | undefined {
  return limit === null || remaining === null ? undefined : { limit, remaining };
}
