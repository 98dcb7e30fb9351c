import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addKey } from './account-keys.js';
import { storeChange } from './change.js';
import type { Database } from './database/database.js';
import { hashKey } from './keys.js';

/** Whom the key of a first start belongs to. */
export const developmentAccount = 'development';

/** Where the key of a data folder is; client commands read it from there. */
export function developmentKeyPath(dataDir: string): string {
  return join(dataDir, 'dev-key');
}

/**
 * Makes sure that the data folder holds a key that works in this database, for its owner's eyes only.
 * @returns Where it is, and whether it is new.
 */
export async function ensureDevelopmentKey(options: {
  database: Database;
  dataDir: string;
}): Promise<{ path: string; created: boolean }> {
  const { database, dataDir } = options;
  const path = developmentKeyPath(dataDir);
  const known = (await readFile(path, 'utf8').catch(() => '')).trim();
  if (known !== '' && (await works(database, known))) return { path, created: false };
  const key = { account: developmentAccount, name: 'first start', withAccount: true };
  const { result } = await storeChange({ database, actor: 'system' }, (change) => addKey(key, change));
  await mkdir(dataDir, { recursive: true });
  const aside = `${path}.${process.pid}`;
  await writeFile(aside, `${result.secret}\n`, { mode: 0o600 });
  await rename(aside, path);
  return { path, created: true };
}

async function works(database: Database, secret: string): Promise<boolean> {
  const key = await database.client.apiKey.findUnique({
    where: { sha256: hashKey(secret) },
    select: { revokedAt: true, expiresAt: true, account: { select: { disabled: true } } },
  });
  if (!key || key.revokedAt || key.account.disabled) return false;
  return !key.expiresAt || key.expiresAt > new Date();
}
