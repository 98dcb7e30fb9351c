import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../../contract/errors.js';
import type { ChangeContext } from '../../platform/change.js';
import { addEndpoints, type Endpoint } from './endpoint.js';

/** Where the administration begins; nothing is there unless it has a token. */
export const adminPrefix = '/admin/v1';

/** Lets those in who have the token of the administration. */
export class AdminGate {
  readonly #sha256: Buffer;

  constructor(token: string) {
    this.#sha256 = digest(token);
  }

  /**
   * @param authorization The header of that name.
   * @throws ServiceError unauthorized. It takes as long whatever is wrong with a token.
   */
  admit(authorization: string | undefined): void {
    const token = /^bearer +([^\s]+) *$/i.exec(authorization ?? '')?.[1] ?? '';
    if (!timingSafeEqual(digest(token), this.#sha256)) {
      throw new ServiceError('unauthorized', 'The token of the administration is missing or wrong.');
    }
  }
}

/** The administration over HTTP. Requests have passed the {@link AdminGate} by then. */
export function addAdminRoutes(
  app: FastifyInstance,
  options: { endpoints: readonly Endpoint[]; context: Omit<ChangeContext, 'actor'> },
): void {
  addEndpoints(app, options.endpoints, (request) => ({ ...options.context, actor: `admin:${request.ip}` }));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
