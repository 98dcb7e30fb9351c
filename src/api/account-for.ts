import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorKind, errorTable } from '../contract/errors.js';
import type { Envelope } from './enqueue.js';
import type { Ending, Reply } from './reply.js';
import { clientGoneStatus } from './request-context.js';
import type { Services } from './services.js';
import type { UsageEntry } from './usage-store.js';

/** Writes down what a request cost, once that is known: the client has its answer by then. */
export async function accountFor(
  reply: Reply,
  options: {
    request: FastifyRequest;
    response: FastifyReply;
    operation: UsageEntry['operation'];
    endUser: string | null;
    envelope: Envelope;
    services: Pick<Services, 'ledger' | 'limits' | 'metrics'>;
  },
): Promise<void> {
  const { request, response, operation, endUser, envelope, services } = options;
  const ending = await reply.ending;
  const { accountId, keyId } = request.caller;
  const { promptTokens, completionTokens } = ending.spent;
  services.limits.settle(
    { accountId, model: reply.model },
    { id: reply.id, tokens: promptTokens + completionTokens },
  );
  const totalMs = Date.now() - envelope.enqueuedAt;
  const entry: UsageEntry = {
    id: reply.id,
    accountId,
    keyId,
    model: reply.model,
    operation,
    endUser,
    ...ending.spent,
    finishReason: ending.reason,
    status: statusOf(ending, response),
    queueMs: ending.queueMs ?? null,
    firstTokenMs: ending.firstTokenMs ?? null,
    totalMs,
    createdAt: new Date(envelope.enqueuedAt),
  };
  services.ledger.record(entry);
  services.metrics.observe(entry);
  request.log.info(
    {
      accountId,
      keyId,
      id: entry.id,
      model: entry.model,
      ...ending.spent,
      finishReason: ending.reason,
      totalMs,
    },
    `${operation} ended`,
  );
}

function statusOf({ reason }: Ending, { raw }: FastifyReply): number {
  if (reason === 'cancelled') return clientGoneStatus;
  // A stream that failed in the middle had begun with 200.
  if (raw.headersSent) return raw.statusCode;
  return reason in errorTable ? errorTable[reason as ErrorKind].status : 200;
}
