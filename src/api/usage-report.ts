import type { UsageGrouping, UsageQuery, UsageSum } from '../contract/usage.js';
import type { Database } from '../platform/database/database.js';

export interface UsageReader {
  /** What one account has used, by hours: a range that begins or ends within an hour has all of it. */
  sum(accountId: string, query: UsageQuery): Promise<UsageSum[]>;
}

type Row = Record<'requests' | 'failed' | 'prompt' | 'completion' | 'cached', number> &
  Record<'day' | 'model' | 'key_id' | 'key_name', string | null>;

const sumHours = `
  SELECT g.*, k.name AS key_name
  FROM (
    SELECT
      CASE WHEN $4 THEN to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD') END AS day,
      CASE WHEN $5 THEN model END AS model,
      CASE WHEN $6 THEN key_id END AS key_id,
      sum(requests)::float8 AS requests,
      sum(failed_requests)::float8 AS failed,
      sum(prompt_tokens)::float8 AS prompt,
      sum(completion_tokens)::float8 AS completion,
      sum(cached_tokens)::float8 AS cached
    FROM usage_hours
    WHERE account_id = $1 AND hour >= date_trunc('hour', $2::timestamptz, 'UTC') AND hour < $3
    GROUP BY 1, 2, 3
  ) g
  LEFT JOIN api_keys k ON k.id = g.key_id AND k.account_id = $1
  ORDER BY g.day, g.model, g.key_id`;

/** Reports from the hours in Postgres. */
export class PostgresUsageReader implements UsageReader {
  readonly #database: Pick<Database, 'query'>;

  constructor(database: Pick<Database, 'query'>) {
    this.#database = database;
  }

  async sum(accountId: string, { start, end, groupBy }: UsageQuery): Promise<UsageSum[]> {
    const by = (grouping: UsageGrouping) => groupBy.has(grouping);
    const rows = await this.#database.query<Row>({
      name: 'sum-usage',
      text: sumHours,
      values: [accountId, start, end, by('day'), by('model'), by('key')],
    });
    return rows.map((row) => ({
      ...(row.day === null ? {} : { day: row.day }),
      ...(row.model === null ? {} : { model: row.model }),
      ...(row.key_id === null ? {} : { key_id: row.key_id, key_name: row.key_name }),
      requests: row.requests,
      failed_requests: row.failed,
      prompt_tokens: row.prompt,
      completion_tokens: row.completion,
      cached_tokens: row.cached,
      total_tokens: row.prompt + row.completion,
    }));
  }
}
