import { z } from 'zod';
import {
  chatChunkSchema,
  chatRequestSchema,
  chatResponseSchema,
  contentPartSchema,
  messageSchema,
  responseFormatSchema,
  toolCallSchema,
  toolChoiceSchema,
  toolSchema,
  usageSchema,
} from '../../contract/chat.js';
import { errorBodySchema } from '../../contract/errors.js';
import { modelListSchema, modelSchema } from '../../contract/models.js';
import { noticeListSchema, noticeSchema, webhookEventSchema } from '../../contract/notices.js';
import { rerankRequestSchema, rerankResponseSchema } from '../../contract/rerank.js';
import { usageReportSchema, usageSumSchema } from '../../contract/usage.js';
import type { JsonSchema } from './document.js';

/** Schemas with a name, which others refer to. */
const components = {
  ChatCompletionRequest: chatRequestSchema,
  ChatCompletion: chatResponseSchema,
  ChatCompletionChunk: chatChunkSchema,
  Message: messageSchema,
  ContentPart: contentPartSchema,
  Tool: toolSchema,
  ToolChoice: toolChoiceSchema,
  ToolCall: toolCallSchema,
  ResponseFormat: responseFormatSchema,
  Usage: usageSchema,
  RerankRequest: rerankRequestSchema,
  RerankResponse: rerankResponseSchema,
  UsageReport: usageReportSchema,
  UsageSum: usageSumSchema,
  ModelList: modelListSchema,
  Model: modelSchema,
  NoticeList: noticeListSchema,
  Notice: noticeSchema,
  WebhookEvent: webhookEventSchema,
  Error: errorBodySchema,
} satisfies Record<string, z.ZodType>;

export type ComponentName = keyof typeof components | keyof typeof streamSchemas;

const prefix = '#/components/schemas/';

const json = (name: keyof typeof components) => ({
  type: 'string',
  contentMediaType: 'application/json',
  contentSchema: { $ref: prefix + name },
});

/** What no request or response is validated with: the parts of a stream. */
const streamSchemas = {
  ChatCompletionEvent: {
    description: 'One server-sent event of a streamed reply, as its data.',
    type: 'object',
    properties: {
      data: {
        description:
          'A chunk; after the last one `[DONE]`; or, when the reply fails after its first event, an error and ' +
          'nothing after it.',
        anyOf: [json('ChatCompletionChunk'), { const: '[DONE]' }, json('Error')],
      },
    },
    required: ['data'],
  },
} satisfies Record<string, JsonSchema>;

/** `components.schemas` of the document, with those of parts that are not always there. */
export function componentSchemas(more: Readonly<Record<string, z.ZodType>>): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries({ ...components, ...more })) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { io: 'input', uri: (id) => prefix + id });
  const entries: [string, JsonSchema][] = Object.entries({ ...schemas, ...streamSchemas });
  return Object.fromEntries(
    // Both keywords would set a base that references inside the document do not have.
    entries.map(([id, { $schema: _dialect, $id: _id, ...schema }]) => [id, schema]),
  );
}

export function refer(name: ComponentName): JsonSchema {
  return { $ref: prefix + name };
}
