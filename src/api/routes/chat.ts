import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ChatRequest, chatRequestSchema } from '../../contract/chat.js';
import type { CatalogueModel } from '../../models/catalogue.js';
import { accountFor } from '../account-for.js';
import { refuseImages } from '../admit.js';
import { gatherChat, streamChat } from '../chat-reply.js';
import { chatJob, enqueue } from '../enqueue.js';
import { enter } from '../enter.js';
import { replyId } from '../request-id.js';
import type { Services } from '../services.js';
import { storableText } from '../storable-text.js';
import { validate } from '../validate.js';

type ChatModel = Extract<CatalogueModel, { task: 'chat' }>;

/** `POST /v1/chat/completions`. Who calls is known before the body is read: see `app.ts`. */
export function addChatRoutes(app: FastifyInstance, services: Services): void {
  const { admission, apiId, idempotency, keepAliveMs, requestTimeoutMs } = services;

  const answer = async (request: FastifyRequest, response: FastifyReply) => {
    const body = validate(chatRequestSchema, request.body);
    const model = admission.model(body.model, 'chat', { request, response });
    request.servedModel = model.id;
    refuseImages(body, model);

    const asked = { model, request, response };
    if (!body.stream) {
      return idempotency.answer({ request, response, asked: body }, async () => {
        const { reply, head } = await begin(body, asked);
        return gatherChat(reply, { head, response });
      });
    }
    const { reply, head } = await begin(body, asked);
    const includeUsage = body.stream_options?.include_usage ?? false;
    return streamChat(reply, { head, includeUsage, response, keepAliveMs });
  };

  /** Lets the request through to its model's queue; what it cost is written down however it ends. */
  const begin = async (
    body: ChatRequest,
    { model, request, response }: { model: ChatModel; request: FastifyRequest; response: FastifyReply },
  ) => {
    const endUser = body.user == null ? null : storableText(body.user);
    const now = Date.now();
    const envelope = {
      id: replyId('chatcmpl'),
      replyTo: apiId,
      enqueuedAt: now,
      deadlineAt: now + requestTimeoutMs,
      caller: { accountId: request.caller.accountId, keyId: request.caller.keyId, endUser },
    };
    const job = chatJob(body, { model, envelope });
    await enter(job, { model, endUser, request, response, services });
    const reply = enqueue(job, services);
    reply.dropWhen(request.disconnected);
    void accountFor(reply, { request, response, operation: 'chat', endUser, envelope, services });

    return { reply, head: { id: reply.id, model: model.id, created: Math.floor(now / 1000) } };
  };

  for (const url of ['/v1/chat/completions', '/chat/completions']) {
    app.post(url, { config: { operation: 'chat' } }, answer);
  }
}
