import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type RerankRequest, rerankRequestSchema } from '../../contract/rerank.js';
import type { CatalogueModel } from '../../models/catalogue.js';
import { accountFor } from '../account-for.js';
import { enqueue, rerankJob } from '../enqueue.js';
import { enter } from '../enter.js';
import { replyId } from '../request-id.js';
import { gatherRanking } from '../rerank-reply.js';
import type { Services } from '../services.js';
import { validate } from '../validate.js';

type RerankModel = Extract<CatalogueModel, { task: 'rerank' }>;

/** `POST /v1/rerank`. Who calls is known before the body is read: see `app.ts`. */
export function addRerankRoutes(app: FastifyInstance, services: Services): void {
  const { admission, apiId, idempotency, requestTimeoutMs } = services;

  const answer = async (request: FastifyRequest, response: FastifyReply) => {
    const body = validate(rerankRequestSchema, request.body);
    const model = admission.model(body.model, 'rerank', { request, response });
    request.servedModel = model.id;
    return idempotency.answer({ request, response, asked: body }, () =>
      rank(body, { model, request, response }),
    );
  };

  const rank = async (
    body: RerankRequest,
    { model, request, response }: { model: RerankModel; request: FastifyRequest; response: FastifyReply },
  ) => {
    const now = Date.now();
    const envelope = {
      id: replyId('rerank'),
      replyTo: apiId,
      enqueuedAt: now,
      deadlineAt: now + requestTimeoutMs,
      caller: { accountId: request.caller.accountId, keyId: request.caller.keyId, endUser: null },
    };
    const job = rerankJob(body, { model, envelope });
    await enter(job, { model, endUser: null, request, response, services });
    const reply = enqueue(job, services);
    reply.dropWhen(request.disconnected);
    void accountFor(reply, { request, response, operation: 'rerank', endUser: null, envelope, services });

    return gatherRanking(reply, { request: body, response });
  };

  for (const url of ['/v1/rerank', '/rerank', '/v2/rerank']) {
    app.post(url, { config: { operation: 'rerank' } }, answer);
  }
}
