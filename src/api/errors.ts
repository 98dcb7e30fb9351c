import type { FastifyBaseLogger, FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import { ServiceError } from '../contract/errors.js';
import { ClientGone } from './reply.js';
import { hasUnreadBody, sendBeforeBody } from './unread-body.js';

/** Every error leaves this process through here: one body, one place that decides what a client may read. */
export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler((error, request, response) => {
    if (error instanceof ClientGone) {
      response.hijack();
      return;
    }
    sendError(response, explain(error, request.log));
  });
}

export function sendError(response: FastifyReply, error: ServiceError): void {
  if (error.retryAfterSeconds !== undefined) response.header('retry-after', error.retryAfterSeconds);
  if (error.kind === 'unauthorized') response.header('www-authenticate', 'Bearer');
  void response.code(error.status).type('application/json; charset=utf-8');
  if (hasUnreadBody(response.request.raw)) sendBeforeBody(response, JSON.stringify(error.toBody()));
  else void response.send(error.toBody());
}

/**
 * What a client is told about an error. Failures of the service itself are logged here, with their cause; of an error
 * that is not meant for clients they learn only that it happened.
 */
export function explain(error: unknown, logger: FastifyBaseLogger): ServiceError {
  const explained = error instanceof ServiceError ? error : (fromFastify(error) ?? unknownError(error));
  if (explained.status >= 500) {
    const level = explained.kind === 'internal' ? 'error' : 'warn';
    logger[level]({ err: explained.cause ?? explained, kind: explained.kind }, explained.message);
  }
  return explained;
}

function unknownError(cause: unknown): ServiceError {
  return new ServiceError('internal', undefined, { cause });
}

/** Errors that Fastify finds in a request before a route sees it. */
function fromFastify(error: unknown): ServiceError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, statusCode } = error as Partial<FastifyError>;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ServiceError('bodyTooLarge');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ServiceError('unsupportedMediaType');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ServiceError('invalidParameter', 'body: its length is not what content-length says');
    case 'FST_ERR_BAD_URL':
      return new ServiceError('invalidParameter', 'url: is not a valid path');
    default:
      return statusCode !== undefined && statusCode >= 400 && statusCode < 500
        ? new ServiceError('invalidParameter', `request: ${error.message}`)
        : undefined;
  }
}
