import { PostgresUsageReader } from '../../api/usage-report.js';
import { type UsageSum, usageQuerySchema } from '../../contract/usage.js';
import { requireAccount } from '../../platform/accounts.js';
import type { Desk } from '../desk.js';
import { type Columns, printRows } from '../listing.js';
import { parseInput } from '../parse-input.js';

/** `headrace usage`. */
export async function runUsage(
  account: string,
  { start, end, groupBy }: { start?: string; end?: string; groupBy: string },
  desk: Desk,
): Promise<void> {
  const query = parseInput(usageQuerySchema, { start, end, group_by: groupBy });
  const { id } = await requireAccount(desk.database.client, account);
  const sums = await new PostgresUsageReader(desk.database).sum(id, query);
  const columns: Columns<UsageSum> = {
    ...(query.groupBy.has('day') && { day: ({ day = '' }) => day }),
    ...(query.groupBy.has('model') && { model: ({ model = '' }) => model }),
    ...(query.groupBy.has('key') && { key: (sum) => sum.key_name ?? sum.key_id ?? '' }),
    requests: ({ requests }) => String(requests),
    failed: (sum) => String(sum.failed_requests),
    prompt: (sum) => String(sum.prompt_tokens),
    completion: (sum) => String(sum.completion_tokens),
    total: (sum) => String(sum.total_tokens),
  };
  printRows(sums, columns, desk);
}
