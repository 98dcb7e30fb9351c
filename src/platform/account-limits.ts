import { type AccountLimits, type LimitChange, limitNames } from '../contract/admin.js';
import { ServiceError } from '../contract/errors.js';
import type { Catalogue } from '../models/catalogue.js';
import { requireAccount } from './accounts.js';
import { type ChangeContext, makeChange } from './change.js';
import type { Database } from './database/database.js';
import type { LimitOverride } from './database/generated/client.js';

/** The limits that differ from those of the catalogue: of one account, or of all. */
export async function listLimits(
  { client }: Pick<Database, 'client'>,
  { account }: { account?: string },
): Promise<AccountLimits[]> {
  const accountId = account === undefined ? undefined : (await requireAccount(client, account)).id;
  const rows = await client.limitOverride.findMany({
    where: { accountId },
    include: { account: { select: { name: true } } },
    orderBy: [{ account: { name: 'asc' } }, { model: 'asc' }],
  });
  return rows.map((row) => toLimits(row, row.account.name));
}

/**
 * Sets limits of an account, of one model or of all that have none of their own. They count from the next request on.
 * @throws ServiceError when there is no such account or model.
 */
export async function changeLimits(
  { account: idOrName, model, ...wish }: LimitChange,
  context: ChangeContext & { catalogue: Catalogue },
): Promise<AccountLimits> {
  if (model != null && !context.catalogue.models.some(({ id }) => id === model)) {
    throw new ServiceError('modelNotFound');
  }
  return makeChange(context, async (change) => {
    const { limitOverride } = change.client;
    const account = await requireAccount(change.client, idOrName);
    const key = { accountId: account.id, model: model ?? '' };
    const row = await limitOverride.findUnique({ where: { accountId_model: key } });
    const none = { rpm: null, rpd: null, tpm: null, tpd: null, ipm: null, ipd: null };
    const before = toLimits(row ?? { ...key, ...none }, account.name);
    const values = Object.fromEntries(
      limitNames.map((name) => [name, wish[name] === undefined ? before[name] : wish[name]]),
    );
    const after = toLimits({ ...key, ...none, ...values }, account.name);
    if (limitNames.every((name) => before[name] === after[name])) return before;
    if (limitNames.every((name) => after[name] === null)) {
      await limitOverride.delete({ where: { accountId_model: key } });
    } else {
      await limitOverride.upsert({
        where: { accountId_model: key },
        create: { ...key, ...values },
        update: values,
      });
    }
    await change.audit({ action: 'limits.update', target: account.id, before, after });
    return after;
  });
}

function toLimits(row: LimitOverride, account: string): AccountLimits {
  const { model, rpm, rpd, tpm, tpd, ipm, ipd } = row;
  return { account, model: model === '' ? null : model, rpm, rpd, tpm, tpd, ipm, ipd };
}
