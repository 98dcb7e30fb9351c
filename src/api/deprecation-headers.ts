import type { FastifyReply } from 'fastify';
import type { ModelState } from '../platform/model-registry/model-state.js';

/**
 * Tells users of a deprecated model since when it is that, as a structured field (RFC 9745, `@` and Unix seconds),
 * and until when it is served, as an HTTP date (RFC 8594).
 */
export function setDeprecationHeaders(
  response: Pick<FastifyReply, 'header'>,
  { state, deprecatedAt, sunsetAt }: ModelState,
): void {
  if (state !== 'deprecated') return;
  if (deprecatedAt !== null) response.header('deprecation', `@${Math.floor(deprecatedAt.getTime() / 1000)}`);
  if (sunsetAt !== null) response.header('sunset', sunsetAt.toUTCString());
}
