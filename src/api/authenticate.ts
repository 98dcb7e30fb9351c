import { createHash, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../contract/errors.js';
import { keysChannel } from '../contract/names.js';
import { abortable } from '../platform/abortable.js';
import type { Channel, Subscription } from '../platform/backplane/backplane.js';
import type { Logger } from '../platform/logger.js';
import { FailedAttempts } from './failed-attempts.js';
import type { KeyRecord, KeyStore } from './key-store.js';

/** Who sends a request. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string;
  /** Whether the account is verified by real name. */
  readonly verified: boolean;
}

export interface AuthenticatorOptions {
  readonly keys: KeyStore;
  readonly logger: Logger;
  /** For how long an answer of the store is believed: the longest that a revoked key still works. */
  readonly cacheMs?: number;
  readonly maxCachedKeys?: number;
  readonly failures?: FailedAttempts;
}

/** Longer headers are refused before anything is computed from them. */
const maxHeaderLength = 1_024;

/** A client waits: when the store takes longer, it is away. */
const lookupTimeoutMs = 5_000;

const tooManyFailures =
  'Request was rejected due to rate limiting. Details: too many wrong API keys were sent from this address.';

/** `last_used_at` of a key is written at most this often. */
const touchIntervalMs = 60_000;

interface CachedLookup {
  readonly askedAt: number;
  readonly record: Promise<KeyRecord | undefined>;
  /** The record, once it is there. */
  known?: KeyRecord;
  refreshing?: boolean;
}

/**
 * Tells whose key a request carries. Only hashes of keys leave this class: neither the store nor a log sees a key.
 *
 * An answer of the store is believed for a second at most, and only until a change of keys or accounts is told on the
 * channel. A key in use is asked for again before its second is over, so that its requests do not wait for the store.
 * An address that sent many wrong keys waits before it may try another; keys that are known to work are not held up.
 */
export class Authenticator {
  readonly #keys: KeyStore;
  readonly #logger: Logger;
  readonly #cacheMs: number;
  readonly #maxCachedKeys: number;
  readonly #failures: FailedAttempts;
  /** By SHA-256, oldest answer first. Unknown keys are apart: trying many does not push out those that work. */
  readonly #working = new Map<string, CachedLookup>();
  readonly #unknown = new Map<string, CachedLookup>();
  readonly #touchedAt = new Map<string, number>();
  #subscription: Subscription | undefined;

  constructor(options: AuthenticatorOptions) {
    const { keys, logger, cacheMs = 1_000, maxCachedKeys = 10_000 } = options;
    this.#keys = keys;
    this.#logger = logger;
    this.#cacheMs = cacheMs;
    this.#maxCachedKeys = maxCachedKeys;
    this.#failures = options.failures ?? new FailedAttempts();
  }

  /** Hears of changes from now on. */
  async listen(channel: Pick<Channel, 'subscribe'>): Promise<void> {
    this.#subscription = await channel.subscribe(keysChannel, () => this.forget());
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }

  /** Believes no earlier answer any more, those under way included. */
  forget(): void {
    this.#working.clear();
    this.#unknown.clear();
  }

  /**
   * @param authorization The header of that name.
   * @param address Where the request comes from.
   * @throws ServiceError unauthorized, accountDisabled, rpmLimit after too many wrong keys, or overloaded when keys
   *   cannot be looked up.
   */
  async authenticate(authorization: string | undefined, address: string): Promise<Caller> {
    const key = bearer(authorization);
    if (key === undefined) throw new ServiceError('unauthorized', 'An API key is needed: "Bearer <key>".');
    const sha256 = createHash('sha256').update(key).digest('hex');
    if (!this.#working.has(sha256)) this.#holdUp(address);
    const record = await this.#lookUp(sha256);
    const now = new Date();
    if (
      record === undefined ||
      !equal(record.sha256, sha256) ||
      record.revokedAt !== null ||
      hasExpired(record, now)
    ) {
      this.#fail(address, record);
      throw new ServiceError('unauthorized');
    }
    if (record.account.disabled) throw new ServiceError('accountDisabled');
    this.#touch(record.id, now);
    return { accountId: record.accountId, keyId: record.id, verified: record.account.verified };
  }

  #holdUp(address: string): void {
    const retryAfterSeconds = this.#failures.waitSeconds(address);
    if (retryAfterSeconds === 0) return;
    throw new ServiceError('rpmLimit', tooManyFailures, { retryAfterSeconds });
  }

  #fail(address: string, record: KeyRecord | undefined): void {
    const emptied = this.#failures.add(address);
    this.#logger.warn(
      { address, keyId: record?.id },
      record === undefined ? 'a key that does not exist was sent' : 'a key that has ended was sent',
    );
    if (emptied) this.#logger.warn({ address }, 'an address that sends wrong keys has to wait');
  }

  async #lookUp(sha256: string): Promise<KeyRecord | undefined> {
    const now = performance.now();
    const cached = this.#working.get(sha256) ?? this.#unknown.get(sha256);
    if (cached === undefined || now - cached.askedAt >= this.#cacheMs) return this.#ask(sha256, now);
    if (cached.known !== undefined && !cached.refreshing && now - cached.askedAt >= this.#cacheMs / 2) {
      cached.refreshing = true;
      this.#ask(sha256, now, cached).catch(() => {});
    }
    return cached.record;
  }

  /** @param current An answer that holds until the new one is there. */
  #ask(sha256: string, askedAt: number, current?: CachedLookup): Promise<KeyRecord | undefined> {
    const record = abortable(this.#keys.find(sha256), AbortSignal.timeout(lookupTimeoutMs)).catch((cause) => {
      throw new ServiceError('overloaded', undefined, { cause });
    });
    const lookup: CachedLookup = { askedAt, record };
    const place = (map: Map<string, CachedLookup>) =>
      setNewest(map, { key: sha256, value: lookup }, this.#maxCachedKeys);
    if (current === undefined) place(this.#unknown);
    const map = current === undefined ? this.#unknown : this.#working;
    record.then(
      (found) => {
        // It was forgotten meanwhile, or a later answer took its place: it may be from before a change.
        if (map.get(sha256) !== (current ?? lookup)) return;
        const works = found !== undefined && found.revokedAt === null;
        map.delete(sha256);
        if (works) lookup.known = found;
        (works ? this.#unknown : this.#working).delete(sha256);
        place(works ? this.#working : this.#unknown);
      },
      () => {
        if (map.get(sha256) === lookup) map.delete(sha256);
      },
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
