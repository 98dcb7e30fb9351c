import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../contract/errors.js';
import { traceId } from './request-id.js';

/** Why Node.js could not read a request, in words for whoever sent it. */
const reasons: Record<string, string> = {
  HPE_HEADER_OVERFLOW: 'headers: are larger than this server takes',
  HPE_INVALID_METHOD: 'method: is not an HTTP method',
  ERR_HTTP_REQUEST_TIMEOUT: 'request: did not arrive in time',
};

/** A client has this long to read why, or to finish what it was sending. */
const lingerMs = 5_000;

/** Answers what is not even an HTTP request, and closes the connection. */
export function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = new ServiceError(
    'invalidParameter',
    reasons[error.code ?? ''] ?? 'request: is not valid HTTP',
  );
  const body = JSON.stringify(refusal.toBody());
  const head = [
    'HTTP/1.1 400 Bad Request',
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${traceId({ headers: {} })}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // A connection that is closed with unread bytes in it is reset, and the client might not see the answer.
  const cut = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(cut));
  socket.resume();
}

/**
 * What Node.js would refuse by itself, in words that are not this service's: a request without a Host header (where
 * its own check is off) and one that expects something unknown, which may be answered all the same.
 */
export function leaveNothingToNode(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.addHook('onRequest', async ({ headers, raw: { httpVersion } }) => {
    if (headers.host === undefined && httpVersion === '1.1') {
      throw new ServiceError('invalidParameter', 'headers.host: is required');
    }
  });
}
