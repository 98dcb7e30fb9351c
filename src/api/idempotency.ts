import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorTable, ServiceError } from '../contract/errors.js';
import type { Logger } from '../platform/logger.js';
import type { Claim, IdempotencyStore, NamedRequest } from './idempotency-store.js';

/** On an answer that was made for an earlier request. */
export const replayedHeader = 'idempotent-replayed';

const saneKey = /^[\x21-\x7e]{1,255}$/;

/** Longer answers are not kept. */
const maxBodyCharacters = 8 << 20;

/** What an account may have kept at once, and how often that is counted: in between it may grow beyond. */
const usualBounds = { keys: 100_000, bytes: 2 ** 30 };
const countMs = 10_000;
/** A place is free again when an answer is a day old. */
const fullRetrySeconds = 600;
const maxCounted = 10_000;

const tooManyKeys =
  'Request was rejected due to rate limiting. Details: too many Idempotency-Keys were sent within 24 hours.';

/** How often a repeat looks whether the first answer is there. */
const pollMs = { first: 50, most: 500 };
/** Beyond the longest that a request takes, its answer is not expected any more. */
const takeOverMarginMs = 60_000;
const sweepMs = 60 * 60 * 1000;
const sweepRows = 1_000;

/**
 * Gives a request that comes again under the same `Idempotency-Key` the answer that the first one got. A repeat waits
 * while the first runs, in whichever process. What failed in a way that may pass is not kept.
 */
export class Idempotency {
  readonly #store: IdempotencyStore;
  readonly #apiId: string;
  readonly #requestTimeoutMs: number;
  readonly #logger: Logger;
  readonly #sweeping: NodeJS.Timeout;
  readonly #bounds: { readonly keys: number; readonly bytes: number };
  /** Whether accounts have no place left, by what was counted last; the oldest count first. */
  readonly #full = new Map<string, { readonly countedAt: number; readonly isFull: Promise<boolean> }>();

  constructor(options: {
    store: IdempotencyStore;
    apiId: string;
    requestTimeoutMs: number;
    logger: Logger;
    bounds?: { keys: number; bytes: number };
  }) {
    this.#store = options.store;
    this.#apiId = options.apiId;
    this.#requestTimeoutMs = options.requestTimeoutMs;
    this.#logger = options.logger;
    this.#bounds = options.bounds ?? usualBounds;
    this.#sweeping = setInterval(() => void this.#sweep(), sweepMs).unref();
  }

  close(): void {
    clearInterval(this.#sweeping);
  }

  /**
   * @param asked The request as it was understood: what is the same here is the same request.
   * @param make Makes the answer, where there is none.
   * @returns The answer, or the text of the first one.
   * @throws ServiceError idempotencyConflict when the key was sent with another request, invalidParameter when it is
   *   no key, rpdLimit when its account has too many of them, deadlineExceeded when the first request takes too long;
   *   what `make` throws.
   */
  async answer<T extends object>(
    { request, response, asked }: { request: FastifyRequest; response: FastifyReply; asked: object },
    make: () => Promise<T>,
  ): Promise<T | string> {
    const key = request.headers['idempotency-key'];
    if (key === undefined) return make();
    if (typeof key !== 'string' || !saneKey.test(key)) {
      throw new ServiceError(
        'invalidParameter',
        'Idempotency-Key: must be 1 to 255 visible ASCII characters',
      );
    }
    const { operation } = request.routeOptions.config;
    const hash = createHash('sha256')
      .update(`${operation} ${JSON.stringify(asked)}`)
      .digest('hex');
    const named = { accountId: request.caller.accountId, key, request: hash, apiId: this.#apiId };
    const claim = await this.#claim(named, request.disconnected);
    if (claim.state === 'other') throw new ServiceError('idempotencyConflict');
    if (claim.state === 'first') {
      await this.#refuseWhenFull(named);
      return this.#make(named, make);
    }
    response.code(claim.status).header(replayedHeader, 'true').type('application/json; charset=utf-8');
    return claim.body;
  }

  async #refuseWhenFull(named: NamedRequest): Promise<void> {
    const isFull = await this.#isFull(named.accountId).catch(() => false);
    if (!isFull) return;
    await this.#finish(named, undefined);
    throw new ServiceError('rpdLimit', tooManyKeys, { retryAfterSeconds: fullRetrySeconds });
  }

  #isFull(accountId: string): Promise<boolean> {
    const now = performance.now();
    const last = this.#full.get(accountId);
    if (last !== undefined && now - last.countedAt < countMs) return last.isFull;
    const isFull = this.#store
      .held(accountId)
      .then(({ keys, bytes }) => keys > this.#bounds.keys || bytes > this.#bounds.bytes);
    this.#full.delete(accountId);
    this.#full.set(accountId, { countedAt: now, isFull });
    if (this.#full.size > maxCounted) this.#full.delete(this.#full.keys().next().value!);
    return isFull;
  }

  async #claim(named: NamedRequest, signal: AbortSignal): Promise<Exclude<Claim, { state: 'running' }>> {
    const giveUpAt = performance.now() + this.#requestTimeoutMs;
    for (let waitMs = pollMs.first; ; waitMs = Math.min(2 * waitMs, pollMs.most)) {
      const claim = await this.#store
        .claim(named, this.#requestTimeoutMs + takeOverMarginMs)
        .catch((cause) => {
          throw new ServiceError('overloaded', undefined, { cause });
        });
      if (claim.state !== 'running') return claim;
      if (performance.now() > giveUpAt) throw new ServiceError('deadlineExceeded');
      await sleep(waitMs, undefined, { signal }).catch(() => {
        throw signal.reason;
      });
    }
  }

  async #make<T extends object>(named: NamedRequest, make: () => Promise<T>): Promise<T> {
    try {
      const answer = await make();
      await this.#finish(named, { status: 200, body: JSON.stringify(answer) });
      return answer;
    } catch (error) {
      const isFinal = error instanceof ServiceError && !errorTable[error.kind].retryable;
      await this.#finish(
        named,
        isFinal ? { status: error.status, body: JSON.stringify(error.toBody()) } : undefined,
      );
      throw error;
    }
  }

  /** The client gets its answer, whether or not it could be kept. */
  async #finish(named: NamedRequest, answer: { status: number; body: string } | undefined): Promise<void> {
    try {
      if (answer === undefined || answer.body.length > maxBodyCharacters) await this.#store.release(named);
      else await this.#store.keep(named, answer);
    } catch (error) {
      this.#logger.warn({ err: error }, 'an answer could not be kept for its Idempotency-Key');
    }
  }

  async #sweep(): Promise<void> {
    try {
      while ((await this.#store.removeOld(sweepRows)) === sweepRows);
    } catch (error) {
      this.#logger.debug({ err: error }, 'old answers could not be removed yet');
    }
  }
}
