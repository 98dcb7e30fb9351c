import type { Database } from '../platform/database/database.js';

/** An API key as authentication needs it. */
export interface KeyRecord {
  readonly id: string;
  readonly accountId: string;
  /** SHA-256 of the key, hexadecimal. */
  readonly sha256: string;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly account: { readonly disabled: boolean; readonly verified: boolean };
}

export interface KeyStore {
  /** Undefined when there is no such key. */
  find(sha256: string): Promise<KeyRecord | undefined>;
  /** Notes that a key was used. */
  touch(keyId: string, at: Date): Promise<void>;
}

/** Keys in Postgres. */
export class PrismaKeyStore implements KeyStore {
  readonly #client: Pick<Database['client'], 'apiKey'>;

  constructor(client: Pick<Database['client'], 'apiKey'>) {
    this.#client = client;
  }

  async find(sha256: string): Promise<KeyRecord | undefined> {
    const record = await this.#client.apiKey.findUnique({
      where: { sha256 },
      select: {
        id: true,
        accountId: true,
        sha256: true,
        expiresAt: true,
        revokedAt: true,
        account: { select: { disabled: true, verified: true } },
      },
    });
    return record ?? undefined;
  }

  async touch(keyId: string, at: Date): Promise<void> {
    // Many, because the key may have been deleted meanwhile.
    await this.#client.apiKey.updateMany({ where: { id: keyId }, data: { lastUsedAt: at } });
  }
}
