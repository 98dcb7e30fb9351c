import { type Account, type AccountChange, accountNameSchema, type NewAccount } from '../contract/admin.js';
import { ServiceError } from '../contract/errors.js';
import { keysChannel } from '../contract/names.js';
import type { Onward } from '../contract/notices.js';
import { type ChangeContext, makeChange } from './change.js';
import type { Database } from './database/database.js';
import type { Account as Row } from './database/generated/client.js';

type HasAccounts = Pick<Database['client'], 'account'>;

/** The accounts, the oldest first: all, or a part of them. */
export async function listAccounts(
  { client }: { client: HasAccounts },
  { limit, after }: Partial<Onward> = {},
): Promise<Account[]> {
  const rows = await client.account.findMany({
    where: { id: { gt: after } },
    orderBy: { id: 'asc' },
    take: limit,
  });
  return rows.map(toAccount);
}

/** @throws ServiceError routeNotFound when no account has this id or name. */
export async function requireAccount(client: HasAccounts, idOrName: string): Promise<Account> {
  const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(idOrName);
  const row = accountNameSchema.safeParse(idOrName).success
    ? await client.account.findFirst({
        where: { OR: [{ name: idOrName }, ...(isId ? [{ id: idOrName }] : [])] },
      })
    : null;
  if (row === null) throw new ServiceError('routeNotFound', `There is no account "${idOrName}".`);
  return toAccount(row);
}

/** @throws ServiceError invalidParameter when the name is taken. */
export async function createAccount(account: NewAccount, context: ChangeContext): Promise<Account> {
  return makeChange(context, async (change) => {
    await refuseTakenName(change.client, account.name);
    const created = toAccount(await change.client.account.create({ data: account }));
    await change.audit({ action: 'account.create', target: created.id, after: created });
    return created;
  });
}

/** @throws ServiceError routeNotFound when there is no such account, invalidParameter when the new name is taken. */
export async function updateAccount(
  idOrName: string,
  wish: AccountChange,
  context: ChangeContext,
): Promise<Account> {
  return makeChange(context, async (change) => {
    const before = await requireAccount(change.client, idOrName);
    const { name = before.name, disabled = before.disabled, verified = before.verified } = wish;
    if (name === before.name && disabled === before.disabled && verified === before.verified) return before;
    if (name !== before.name) await refuseTakenName(change.client, name);
    const data = { name, disabled, verified };
    const after = toAccount(await change.client.account.update({ where: { id: before.id }, data }));
    await change.audit({ action: 'account.update', target: after.id, before, after });
    change.tell(keysChannel);
    return after;
  });
}

/** Names stand for accounts in commands: one that looks like another's id would stand for two. */
async function refuseTakenName(client: HasAccounts, name: string): Promise<void> {
  const taken = await requireAccount(client, name).catch(() => undefined);
  if (taken !== undefined) {
    throw new ServiceError('invalidParameter', `name: there is an account "${name}" already`);
  }
}

function toAccount({ id, name, disabled, verified, createdAt }: Row): Account {
  return { id, name, disabled, verified, created: createdAt.toISOString() };
}
