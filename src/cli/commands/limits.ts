import { type AccountLimits, limitChangeSchema, limitNames } from '../../contract/admin.js';
import { changeLimits, listLimits } from '../../platform/account-limits.js';
import type { Desk } from '../desk.js';
import { type Columns, printRow, printRows } from '../listing.js';
import { parseInput } from '../parse-input.js';

const columns: Columns<AccountLimits> = {
  account: ({ account }) => account,
  model: ({ model }) => model ?? '(others)',
  ...Object.fromEntries(limitNames.map((name) => [name, (limits: AccountLimits) => cell(limits[name])])),
};

/** `headrace limits list`. */
export async function runListLimits({ account }: { account?: string }, desk: Desk): Promise<void> {
  printRows(await listLimits(desk.database, { account }), columns, desk);
}

/** `headrace limits set`. */
export async function runSetLimits(
  account: string,
  wish: Record<string, unknown>,
  desk: Desk,
): Promise<void> {
  const { json: _json, ...given } = wish;
  const limits = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, value === 'usual' ? null : value]),
  );
  const change = parseInput(limitChangeSchema, { account, ...limits });
  const catalogue = await desk.loadCatalogue();
  printRow(await changeLimits(change, { ...desk, catalogue }), columns, desk);
}

function cell(limit: number | null): string {
  if (limit === null) return 'usual';
  return limit === -1 ? 'none' : String(limit);
}
