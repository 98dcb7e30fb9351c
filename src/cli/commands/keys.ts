import type { Database } from '../../platform/database/database.js';
import { createKey, type KeySummary, listKeys, revokeKey } from '../../platform/keys.js';
import type { Terminal } from '../client/terminal.js';
import { formatTable } from '../table.js';

interface Context {
  readonly database: Database;
  readonly terminal: Terminal;
  readonly json: boolean;
}

/** `headrace keys create`: the secret goes to standard output alone, so that it can be piped to where it is kept. */
export async function runCreateKey(
  options: { name: string; account: string; expiresInMs: number | undefined },
  { database, terminal, json }: Context,
): Promise<void> {
  const key = await createKey({
    database,
    accountName: options.account,
    keyName: options.name,
    expiresAt: options.expiresInMs === undefined ? undefined : new Date(Date.now() + options.expiresInMs),
  });
  if (json) {
    terminal.stdout.write(`${JSON.stringify(key, null, 2)}\n`);
    return;
  }
  terminal.stderr.write(`A key for the account "${key.accountName}". It is not shown again:\n`);
  terminal.stdout.write(`${key.secret}\n`);
}

/** `headrace keys list`. */
export async function runListKeys({ database, terminal, json }: Context): Promise<void> {
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
export async function runRevokeKey(idOrPrefix: string, { database, terminal, json }: Context): Promise<void> {
  const key = await revokeKey(database, idOrPrefix);
  if (key === undefined) {
    throw new Error(
      `"${idOrPrefix}" is not the id or the prefix of one key; "headrace keys list" shows both.`,
    );
  }
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
