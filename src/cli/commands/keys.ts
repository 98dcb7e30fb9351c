import { endKey, issueKey } from '../../platform/account-keys.js';
import { type KeySummary, listKeys } from '../../platform/keys.js';
import type { Desk } from '../desk.js';
import { formatTable } from '../table.js';

/** `headrace keys create`: the secret goes to standard output alone, so that it can be piped to where it is kept. */
export async function runCreateKey(
  options: { name: string; account: string; expiresInMs: number | undefined },
  desk: Omit<Desk, 'loadCatalogue'>,
): Promise<void> {
  const { terminal, json } = desk;
  const { account, name, expiresInMs } = options;
  const expiresAt = expiresInMs === undefined ? undefined : new Date(Date.now() + expiresInMs);
  const key = await issueKey({ account, name, expiresAt, withAccount: true }, desk);
  if (json) {
    terminal.stdout.write(`${JSON.stringify(key, null, 2)}\n`);
    return;
  }
  terminal.stderr.write(`A key for the account "${key.accountName}". It is not shown again:\n`);
  terminal.stdout.write(`${key.secret}\n`);
}

/** `headrace keys list`. */
export async function runListKeys({
  database,
  terminal,
  json,
}: Pick<Desk, 'database' | 'terminal' | 'json'>): Promise<void> {
  const keys = await listKeys(database);
  if (json) {
    terminal.stdout.write(`${JSON.stringify(keys, null, 2)}\n`);
    return;
  }
  const now = new Date();
  const table = formatTable(
    ['id', 'prefix', 'account', 'name', 'state', 'created', 'last used'],
    keys.map((key) => [
      key.id,
      key.prefix,
      key.accountName,
      key.name,
      stateOf(key, now),
      day(key.createdAt),
      key.lastUsedAt === null ? 'never' : day(key.lastUsedAt),
    ]),
  );
  terminal.stdout.write(`${table}\n`);
}

/**
 * `headrace keys revoke`.
 * @throws Error when not exactly one key answers to `idOrPrefix`.
 */
export async function runRevokeKey(idOrPrefix: string, desk: Omit<Desk, 'loadCatalogue'>): Promise<void> {
  const { terminal, json } = desk;
  const key = await endKey(idOrPrefix, desk);
  const text = json ? JSON.stringify(key, null, 2) : `Revoked the key ${key.prefix}… ("${key.name}").`;
  terminal.stdout.write(`${text}\n`);
}

function stateOf({ expiresAt, revokedAt }: KeySummary, now: Date): string {
  if (revokedAt !== null) return `revoked ${day(revokedAt)}`;
  if (expiresAt === null) return 'active';
  return expiresAt <= now ? `expired ${day(expiresAt)}` : `active until ${day(expiresAt)}`;
}

function day(date: Date): string {
  return date.toISOString().slice(0, 10);
}
