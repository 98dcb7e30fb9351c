import { type Key, newAccountSchema } from '../contract/admin.js';
import { ServiceError } from '../contract/errors.js';
import { keysChannel } from '../contract/names.js';
import { requireAccount } from './accounts.js';
import { type Change, type ChangeContext, makeChange } from './change.js';
import { createKey, type KeySummary, revokeKey } from './keys.js';

interface NewKey {
  readonly account: string;
  readonly name: string;
  readonly expiresAt?: Date;
  /** Makes the account too where there is none of this name. */
  readonly withAccount?: boolean;
}

/**
 * Makes a key for an account.
 * @returns The secret with what is known of it; it cannot be shown again.
 * @throws ServiceError routeNotFound when there is no such account.
 */
export async function issueKey(
  options: NewKey,
  context: ChangeContext,
): Promise<KeySummary & { secret: string }> {
  return makeChange(context, (change) => addKey(options, change));
}

/** As {@link issueKey}, within a change. */
export async function addKey(options: NewKey, change: Change): Promise<KeySummary & { secret: string }> {
  const known = await requireAccount(change.client, options.account).catch((error) => {
    if (!options.withAccount) throw error;
  });
  const accountName = known?.name ?? newAccountSchema.parse({ name: options.account }).name;
  const { secret, ...key } = await createKey({
    database: change,
    accountName,
    keyName: options.name,
    expiresAt: options.expiresAt,
  });
  if (known === undefined) await auditNewAccount(change, accountName);
  await change.audit({ action: 'key.create', target: key.id, after: toKey(key) });
  // Whoever tried it before was told that there is no such key.
  change.tell(keysChannel);
  return { ...key, secret };
}

/**
 * Ends a key for good.
 * @param idOrPrefix As lists show it.
 * @throws ServiceError routeNotFound when none, or more than one, answers to this.
 */
export async function endKey(idOrPrefix: string, context: ChangeContext): Promise<KeySummary> {
  return makeChange(context, async (change) => {
    const startedAt = new Date();
    const key = await revokeKey(change, idOrPrefix);
    if (key === undefined) {
      throw new ServiceError(
        'routeNotFound',
        `"${idOrPrefix}" is not the id or the prefix of one key, as lists show both.`,
      );
    }
    if (key.revokedAt !== null && key.revokedAt >= startedAt) {
      const after = toKey(key);
      await change.audit({
        action: 'key.revoke',
        target: key.id,
        before: { ...after, revoked: null },
        after,
      });
      change.tell(keysChannel);
    }
    return key;
  });
}

export function toKey(key: KeySummary): Key {
  return {
    id: key.id,
    account: key.accountName,
    name: key.name,
    prefix: key.prefix,
    created: key.createdAt.toISOString(),
    last_used: key.lastUsedAt?.toISOString() ?? null,
    expires: key.expiresAt?.toISOString() ?? null,
    revoked: key.revokedAt?.toISOString() ?? null,
  };
}

async function auditNewAccount(change: Change, name: string): Promise<void> {
  const account = await requireAccount(change.client, name);
  await change.audit({ action: 'account.create', target: account.id, after: account });
}
