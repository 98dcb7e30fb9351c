import { createHash, randomInt } from 'node:crypto';
import { z } from 'zod';
import type { Onward } from '../contract/notices.js';
import type { Database } from './database/database.js';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const secretLength = 48;
const prefixLength = 10;

/** Also a database inside a transaction. */
interface HasClient {
  readonly client: Pick<Database['client'], 'account' | 'apiKey'>;
}

/** A key as it can be shown at any time. */
export interface KeySummary {
  readonly id: string;
  readonly accountName: string;
  readonly name: string;
  /** The first characters of the secret. */
  readonly prefix: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}

/** SHA-256 of a secret, hexadecimal: all that is stored of it. */
export function hashKey(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/**
 * Makes a key for an account, and the account where there is none of this name.
 * @returns The secret with what is known of it; it cannot be shown again.
 */
export async function createKey(options: {
  database: HasClient;
  accountName: string;
  keyName: string;
  expiresAt?: Date;
}): Promise<KeySummary & { secret: string }> {
  const { database, accountName, keyName } = options;
  const secret = `sk-${Array.from({ length: secretLength }, () => alphabet[randomInt(alphabet.length)]).join('')}`;
  // Two that make keys for a new account at once must not both create it.
  await database.client.account.createMany({ data: [{ name: accountName }], skipDuplicates: true });
  const key = await database.client.apiKey.create({
    data: {
      name: keyName,
      prefix: secret.slice(0, prefixLength),
      sha256: hashKey(secret),
      expiresAt: options.expiresAt ?? null,
      account: { connect: { name: accountName } },
    },
    select: summary,
  });
  return { ...flatten(key), secret };
}

/** Keys, revoked ones included, the oldest first: all, or those of one account, or a part of them. */
export async function listKeys(
  database: HasClient,
  options: { accountId?: string } & Partial<Onward> = {},
): Promise<KeySummary[]> {
  const { accountId, limit, after } = options;
  const keys = await database.client.apiKey.findMany({
    where: { accountId, id: { gt: after } },
    select: summary,
    orderBy: { id: 'asc' },
    take: limit,
  });
  return keys.map(flatten);
}

/**
 * Ends a key for good.
 * @param idOrPrefix As `listKeys` shows it.
 * @returns The key, or undefined when none, or more than one, answers to this.
 */
export async function revokeKey(database: HasClient, idOrPrefix: string): Promise<KeySummary | undefined> {
  const isId = z.uuid().safeParse(idOrPrefix).success;
  // What is in no prefix is not asked for: Postgres takes no U+0000.
  const isPrefix = /^[\w-]+$/.test(idOrPrefix);
  const answering = [...(isId ? [{ id: idOrPrefix }] : []), ...(isPrefix ? [{ prefix: idOrPrefix }] : [])];
  const matching = await database.client.apiKey.findMany({
    where: { OR: answering },
    select: summary,
    take: 2,
  });
  const [key, another] = matching;
  if (!key || another) return undefined;
  if (key.revokedAt) return flatten(key);
  const revoked = await database.client.apiKey.update({
    where: { id: key.id },
    data: { revokedAt: new Date() },
    select: summary,
  });
  return flatten(revoked);
}

const summary = {
  id: true,
  name: true,
  prefix: true,
  createdAt: true,
  lastUsedAt: true,
  expiresAt: true,
  revokedAt: true,
  account: { select: { name: true } },
} as const;

function flatten<T extends { account: { name: string } }>({ account, ...key }: T) {
  return { ...key, accountName: account.name };
}
