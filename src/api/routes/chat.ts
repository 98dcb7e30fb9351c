import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { chatRequestSchema } from '../../contract/chat.js';
import { accountFor } from '../account-for.js';
import { refuseImages } from '../admit.js';
import { gatherChat, streamChat } from '../chat-reply.js';
import { chatJob, enqueue } from '../enqueue.js';
import { enter } from '../enter.js';
import { replyId } from '../request-id.js';
import type { Services } from '../services.js';
import { storableText } from '../storable-text.js';
import { refuseUnsupportedFields } from '../unsupported-fields.js';
import { validate } from '../validate.js';

/** `POST /v1/chat/completions`. Who calls is known before the body is read: see `app.ts`. */
export function addChatRoutes(app: FastifyInstance, services: Services): void {
  const { admission, apiId, keepAliveMs, requestTimeoutMs } = services;

  const answer = async (request: FastifyRequest, response: FastifyReply) => {
    const body = validate(chatRequestSchema, request.body);
    const model = admission.model(body.model, 'chat', { request, response });
    request.servedModel = model.id;
    refuseUnsupportedFields(body);
    refuseImages(body, model);

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

    const head = { id: reply.id, model: model.id, created: Math.floor(now / 1000) };
    if (!body.stream) return gatherChat(reply, { head, response });
    const includeUsage = body.stream_options?.include_usage ?? false;
    return streamChat(reply, { head, includeUsage, response, keepAliveMs });
  };

  for (const url of ['/v1/chat/completions', '/chat/completions']) {
    app.post(url, { config: { operation: 'chat' } }, answer);
  }
}
