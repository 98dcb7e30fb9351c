import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';

/** What is read and thrown away of a body that nobody wants, at most. */
const maxDiscardedBytes = 64 << 20;
const maxDiscardMs = 30_000;

/** Whether some of the body may still be on its way. */
export function hasUnreadBody(request: IncomingMessage): boolean {
  if (request.complete || request.readableEnded) return false;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  return encoding !== undefined || length !== '0';
}

/**
 * Sends a whole response while its request may still be arriving. A connection that is closed with unread bytes in it
 * is reset, and a client that was still writing then never reads why: so the response goes out at once, what follows
 * of the body is thrown away, and only then the connection is closed (RFC 9112, section 9.6).
 */
export function sendBeforeBody(response: FastifyReply, body: string): void {
  const { raw, request } = response;
  response.hijack();
  raw.writeHead(raw.statusCode, {
    ...(response.getHeaders() as OutgoingHttpHeaders),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  raw.write(body);
  discard(request.raw, () => raw.end());
}

/** Reads a body to its end, or as far as is worth it, and calls `done` once. */
function discard(request: IncomingMessage, done: () => void): void {
  let discarded = 0;
  const stop = () => {
    clearTimeout(timer);
    request.off('data', count).off('end', stop).off('close', stop);
    done();
  };
  const count = (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > maxDiscardedBytes) stop();
  };
  const timer = setTimeout(stop, maxDiscardMs);
  // A client that breaks off is what this waits for as well.
  request.on('error', () => {});
  request.on('data', count).on('end', stop).on('close', stop).resume();
}
