import type { FastifyReply } from 'fastify';

/** Tells the client how long the request waited for a worker and, where known, for its first token or score. */
export function setTimingHeaders(
  response: FastifyReply,
  { queueMs, firstTokenMs }: { queueMs: number; firstTokenMs?: number | null },
): void {
  response.header('x-headrace-queue-ms', queueMs.toFixed(1));
  if (firstTokenMs != null) response.header('x-headrace-first-token-ms', firstTokenMs.toFixed(1));
}
