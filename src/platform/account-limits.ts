import { type AccountLimits, type LimitChange, limitNames } from '../contract/admin.js';
import { ServiceError } from '../contract/errors.js';
import type { Catalogue } from '../models/catalogue.js';
import { requireAccount } from './accounts.js';
import { type ChangeContext, makeChange } from './change.js';
import type { Database } from './database/database.js';
import type { LimitOverride } from './database/generated/client.js';

const uuidLength = 36;

/** The limits that differ from those of the catalogue, by accounts from the oldest on: all, or a part of them. */
export async function listLimits(
  { client }: Pick<Database, 'client'>,
  { account, limit, after }: { account?: string; limit?: number; after?: string } = {},
): Promise<AccountLimits[]> {
  const accountId = account === undefined ? undefined : (await requireAccount(client, account)).id;
  const rows = await client.limitOverride.findMany({
    where: { accountId, ...(after !== undefined && { OR: behind(after) }) },
    include: { account: { select: { name: true } } },
    orderBy: [{ accountId: 'asc' }, { model: 'asc' }],
    take: limit,
  });
  return rows.map((row) => toLimits(row, row.account.name));
}

/** @param id As {@link toLimits} writes it. */
function behind(id: string) {
  const accountId = id.slice(0, uuidLength);
  const model = id.slice(uuidLength + 1);
  return [{ accountId: { gt: accountId } }, { accountId, model: { gt: model } }];
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
  const { accountId, model, rpm, rpd, tpm, tpd, ipm, ipd } = row;
  const id = model === '' ? accountId : `${accountId}/${model}`;
  return { id, account, model: model === '' ? null : model, rpm, rpd, tpm, tpd, ipm, ipd };
}
