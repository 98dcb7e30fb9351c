import { createHash, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../contract/errors.js';
import { abortable } from '../platform/abortable.js';
import type { Logger } from '../platform/logger.js';
import type { KeyRecord, KeyStore } from './key-store.js';

/** Who sends a request. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string;
}

export interface AuthenticatorOptions {
  readonly keys: KeyStore;
  readonly logger: Logger;
  /** For how long an answer of the store is believed: the longest that a revoked key still works. */
  readonly cacheMs?: number;
  readonly maxCachedKeys?: number;
}

/** Longer headers are refused before anything is computed from them. */
const maxHeaderLength = 1_024;

/** A client waits: when the store takes longer, it is away. */
const lookupTimeoutMs = 5_000;

/** `last_used_at` of a key is written at most this often. */
const touchIntervalMs = 60_000;

interface CachedLookup {
  readonly expiresAt: number;
  readonly record: Promise<KeyRecord | undefined>;
}

/**
 * Tells whose key a request carries. Only hashes of keys leave this class: neither the store nor a log sees a key.
 */
export class Authenticator {
  readonly #keys: KeyStore;
  readonly #logger: Logger;
  readonly #cacheMs: number;
  readonly #maxCachedKeys: number;
  /** By SHA-256, oldest answer first; unknown keys too, so that trying one again costs no query. */
  readonly #cache = new Map<string, CachedLookup>();
  readonly #touchedAt = new Map<string, number>();

  constructor({ keys, logger, cacheMs = 1_000, maxCachedKeys = 10_000 }: AuthenticatorOptions) {
    this.#keys = keys;
    this.#logger = logger;
    this.#cacheMs = cacheMs;
    this.#maxCachedKeys = maxCachedKeys;
  }

  /**
   * @param authorization The header of that name.
   * @throws ServiceError unauthorized, accountDisabled, or overloaded when keys cannot be looked up.
   */
  async authenticate(authorization: string | undefined): Promise<Caller> {
    const key = bearer(authorization);
    if (key === undefined) throw new ServiceError('unauthorized', 'An API key is needed: "Bearer <key>".');
    const sha256 = createHash('sha256').update(key).digest('hex');
    const record = await this.#lookUp(sha256);
    const now = new Date();
    if (
      record === undefined ||
      !equal(record.sha256, sha256) ||
      record.revokedAt !== null ||
      hasExpired(record, now)
    ) {
      throw new ServiceError('unauthorized');
    }
    if (record.account.disabled) throw new ServiceError('accountDisabled');
    this.#touch(record.id, now);
    return { accountId: record.accountId, keyId: record.id };
  }

  async #lookUp(sha256: string): Promise<KeyRecord | undefined> {
    const now = performance.now();
    const cached = this.#cache.get(sha256);
    if (cached !== undefined && cached.expiresAt > now) return cached.record;
    const record = abortable(this.#keys.find(sha256), AbortSignal.timeout(lookupTimeoutMs)).catch((cause) => {
      this.#cache.delete(sha256);
      throw new ServiceError('overloaded', undefined, { cause });
    });
    setNewest(
      this.#cache,
      { key: sha256, value: { expiresAt: now + this.#cacheMs, record } },
      this.#maxCachedKeys,
    );
    return record;
  }

  /** In the background: a request does not wait for it, and nothing depends on it. */
  #touch(keyId: string, at: Date): void {
    const now = performance.now();
    const touchedAt = this.#touchedAt.get(keyId);
    if (touchedAt !== undefined && now - touchedAt < touchIntervalMs) return;
    setNewest(this.#touchedAt, { key: keyId, value: now }, this.#maxCachedKeys);
    void this.#keys.touch(keyId, at).catch((error) => {
      this.#logger.debug({ keyId, err: error }, 'the time a key was last used could not be written');
    });
  }
}

function bearer(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization.length > maxHeaderLength) return undefined;
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
}

function hasExpired({ expiresAt }: KeyRecord, now: Date): boolean {
  return expiresAt !== null && expiresAt <= now;
}

function equal(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/** Keeps a map in the order of its last writes, and within `limit` entries. */
function setNewest<V>(map: Map<string, V>, { key, value }: { key: string; value: V }, limit: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > limit) map.delete(map.keys().next().value!);
}
