import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorKind, errorTable, ServiceError } from '../contract/errors.js';
import type { Job } from '../contract/job.js';
import { limitError } from '../contract/limit-error.js';
import type { CatalogueModel } from '../models/catalogue.js';
import type { EstimatedJob } from './enqueue.js';
import { setLimitHeaders } from './limit-headers.js';
import type { Services } from './services.js';

/**
 * Lets a request through to its model's queue: within the limits of its account, and then of the queue. From then on
 * the tokens it may use are reserved, until `accountFor` says what they were. A request that is refused has its row in
 * the ledger.
 * @throws ServiceError naming the limit; overloaded when the queue is full, or it or the database is away.
 */
export async function enter(
  job: EstimatedJob,
  options: {
    model: CatalogueModel;
    endUser: string | null;
    request: FastifyRequest;
    response: FastifyReply;
    services: Pick<Services, 'limits' | 'admission' | 'ledger'>;
  },
): Promise<void> {
  const { model, endUser, request, response, services } = options;
  const { limits, admission, ledger } = services;
  const { accountId, keyId } = request.caller;
  const lane = { accountId, model: model.id, operation: job.kind, defaults: model.limits ?? {} };
  try {
    const share = { id: job.id, keyId, endUser, tokens: job.reservedTokens, images: imagesOf(job) };
    const verdict = await limits.reserve(lane, share);
    setLimitHeaders(response, verdict);
    if (verdict.refused !== undefined) throw limitError(verdict.refused, verdict.at);
    await admission.enter(model.id).catch((error) => {
      limits.settle(lane, { id: job.id, tokens: 0 });
      throw error;
    });
  } catch (error) {
    const kind: ErrorKind = error instanceof ServiceError ? error.kind : 'internal';
    ledger.record({
      id: job.id,
      accountId,
      keyId,
      model: model.id,
      operation: job.kind,
      endUser,
      promptTokens: 0,
      completionTokens: 0,
      cachedTokens: 0,
      finishReason: kind,
      status: errorTable[kind].status,
      queueMs: null,
      firstTokenMs: null,
      totalMs: Date.now() - job.enqueuedAt,
      createdAt: new Date(job.enqueuedAt),
    });
    throw error;
  }
}

function imagesOf(job: Job): number {
  if (job.kind !== 'chat') return 0;
  return job.messages.reduce(
    (sum, { content }) =>
      sum + (Array.isArray(content) ? content.filter(({ type }) => type === 'image_url').length : 0),
    0,
  );
}
