import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export const requestIdHeader = 'x-request-id';

const sane = /^[A-Za-z0-9._:-]{1,128}$/;

/** What `x-request-id` of the response is to be: the caller's own when it is fit for a header and a log line. */
export function traceId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers[requestIdHeader];
  return typeof given === 'string' && sane.test(given) ? given : randomHex().slice(-24);
}

/**
 * The id of a reply and of its job. Always made here: two callers who send the same `x-request-id` must not meet in
 * the queue.
 */
export function replyId(prefix: 'chatcmpl' | 'rerank'): string {
  return `${prefix}-${randomHex()}`;
}

/** 32 digits, 122 bits of them random. Node.js makes these from a supply, without asking the system each time. */
function randomHex(): string {
  return randomUUID().replaceAll('-', '');
}
