import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../../contract/errors.js';
import type { ChangeContext } from '../../platform/change.js';
import type { Logger } from '../../platform/logger.js';
import { clientAddress } from '../client-address.js';
import { FailedAttempts } from '../failed-attempts.js';
import { addEndpoints, type Endpoint } from './endpoint.js';

/** Where the administration begins; nothing is there unless it has a token. */
export const adminPrefix = '/admin/v1';

/**
 * Lets those in who have the token of the administration. An address that sent many wrong ones waits before it may try
 * another; until then the right one is refused too, since an answer would tell that it is right.
 */
export class AdminGate {
  readonly #sha256: Buffer;
  readonly #logger: Logger;
  readonly #failures: FailedAttempts;

  constructor(options: { token: string; logger: Logger; failures?: FailedAttempts }) {
    this.#sha256 = digest(options.token);
    this.#logger = options.logger;
    this.#failures = options.failures ?? new FailedAttempts();
  }

  /**
   * @param authorization The header of that name.
   * @param address Where the request comes from.
   * @throws ServiceError unauthorized, as soon whatever is wrong with a token; rpmLimit after too many wrong ones.
   */
  admit(authorization: string | undefined, address: string): void {
    const retryAfterSeconds = this.#failures.waitSeconds(address);
    if (retryAfterSeconds > 0) throw new ServiceError('rpmLimit', tooManyFailures, { retryAfterSeconds });
    const refusal = new ServiceError('unauthorized', 'The token of the administration is missing or wrong.');
    // Who sends none tries none.
    if (authorization === undefined) throw refusal;
    const token = /^bearer +([^\s]+) *$/i.exec(authorization)?.[1] ?? '';
    if (timingSafeEqual(digest(token), this.#sha256)) return;
    const emptied = this.#failures.add(address);
    this.#logger.warn({ address }, 'a wrong token of the administration was sent');
    if (emptied) this.#logger.warn({ address }, 'an address that sends wrong tokens has to wait');
    throw refusal;
  }
}

const tooManyFailures =
  'Request was rejected due to rate limiting. Details: too many wrong tokens were sent from this address.';

/** The administration over HTTP. Requests have passed the {@link AdminGate} by then. */
export function addAdminRoutes(
  app: FastifyInstance,
  options: { endpoints: readonly Endpoint[]; context: Omit<ChangeContext, 'actor'> },
): void {
  addEndpoints(app, options.endpoints, (request) => ({
    ...options.context,
    actor: `admin:${clientAddress(request)}`,
  }));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
