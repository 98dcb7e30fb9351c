import { type ComponentName, refer } from './components.js';
import type {
  Example,
  JsonSchema,
  MediaType,
  OpenApiDocument,
  Operation,
  Parameter,
  ResponseObject,
} from './document.js';
import { examples } from './examples.js';
import {
  errorResponses,
  limitHeaders,
  operationErrors,
  requestIdHeader,
  timingHeaders,
} from './responses.js';

const replayedHeader = {
  'idempotent-replayed': {
    description: '`true` on the answer of an earlier request with this key.',
    schema: { type: 'string' },
  },
};

function idempotencyKey(note = ''): Parameter {
  return {
    name: 'Idempotency-Key',
    in: 'header',
    description: `${note}The same request with the same key gets the first answer for 24 hours.`,
    schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
  };
}

export function chatOperation(): Operation {
  return {
    operationId: 'createChatCompletion',
    summary: 'Write the next message of a conversation',
    description:
      'With `stream`, the reply comes as server-sent events: each `data:` line holds a ChatCompletionChunk, and ' +
      '`data: [DONE]` ends the stream. The first delta of a choice carries `role`, the chunk with its ' +
      '`finish_reason` an empty delta, and the last of these the `usage`. A comment line is sent when nothing was ' +
      'for 15 seconds. An error after the first event is sent as `data:` with an Error, and the connection ends ' +
      'without `[DONE]`. Closing the connection stops the generation. Also at `/chat/completions`.',
    tags: ['Inference'],
    parameters: [idempotencyKey('Not with `stream`. ')],
    requestBody: json('ChatCompletionRequest', examples.chatRequests),
    responses: {
      200: {
        description: 'The reply.',
        headers: { ...requestIdHeader, ...timingHeaders, ...limitHeaders, ...replayedHeader },
        content: {
          'application/json': { schema: refer('ChatCompletion'), examples: examples.chatResponse },
          'text/event-stream': {
            schema: {
              type: 'string',
              contentMediaType: 'text/event-stream',
              contentSchema: { type: 'array', items: refer('ChatCompletionEvent') },
            },
            examples: examples.chatStream,
          },
        },
      },
      ...errorResponses(operationErrors),
    },
  };
}

export function rerankOperation(): Operation {
  return {
    operationId: 'rerank',
    summary: 'Put documents in the order of their relevance to a query',
    description:
      'Results are sorted by falling score, ties by index; `relevance_score` is within 0 and 1. Also at `/rerank` and `/v2/rerank`.',
    tags: ['Inference'],
    parameters: [idempotencyKey()],
    requestBody: json('RerankRequest', examples.rerankRequest),
    responses: {
      200: {
        description: 'The documents, most relevant first.',
        headers: { ...requestIdHeader, ...timingHeaders, ...limitHeaders, ...replayedHeader },
        content: {
          'application/json': { schema: refer('RerankResponse'), examples: examples.rerankResponse },
        },
      },
      ...errorResponses(operationErrors),
    },
  };
}

export function listModelsOperation(): Operation {
  const filter = (name: string, values: readonly string[], description: string): Parameter => ({
    name,
    in: 'query',
    description,
    schema: { type: 'string', enum: values },
  });
  return {
    operationId: 'listModels',
    summary: 'List the models that are online',
    tags: ['Models'],
    parameters: [
      filter('type', ['text'], 'Only models of this type.'),
      filter('sub_type', ['chat', 'reranker'], 'Only models for this operation.'),
    ],
    responses: {
      200: {
        description: 'The models.',
        headers: requestIdHeader,
        content: { 'application/json': { schema: refer('ModelList'), examples: examples.modelList } },
      },
      ...errorResponses(['invalidParameter', 'unauthorized', 'accountDisabled', 'internal', 'overloaded']),
    },
  };
}

export function getModelOperation(): Operation {
  return {
    operationId: 'getModel',
    summary: 'One model',
    tags: ['Models'],
    parameters: [
      {
        name: 'id',
        in: 'path',
        required: true,
        description: "The model's id; it may contain slashes.",
        schema: { type: 'string' },
      },
    ],
    responses: {
      200: {
        description: 'The model.',
        headers: requestIdHeader,
        content: { 'application/json': { schema: refer('Model'), examples: examples.model } },
      },
      ...errorResponses(['modelNotFound', 'unauthorized', 'accountDisabled', 'internal', 'overloaded']),
    },
  };
}

export function listNoticesOperation(): Operation {
  return {
    operationId: 'listNotices',
    summary: 'List what everyone, and what your account, is told, the newest first',
    tags: ['Notices'],
    parameters: [
      {
        name: 'limit',
        in: 'query',
        description: 'How many to show.',
        schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
      },
      {
        name: 'before',
        in: 'query',
        description: 'Only those older than the one of this id.',
        schema: { type: 'string', format: 'uuid' },
      },
    ],
    responses: {
      200: {
        description: 'The notices.',
        headers: requestIdHeader,
        content: { 'application/json': { schema: refer('NoticeList'), examples: examples.noticeList } },
      },
      ...errorResponses(['invalidParameter', 'unauthorized', 'accountDisabled', 'internal', 'overloaded']),
    },
  };
}

export function noticeFeedOperation(): Operation {
  return {
    operationId: 'getNoticeFeed',
    summary: 'The newest notices as an Atom feed',
    tags: ['Notices'],
    responses: {
      200: {
        description: 'The feed (RFC 4287).',
        headers: requestIdHeader,
        content: { 'application/atom+xml': { schema: { type: 'string' }, examples: examples.noticeFeed } },
      },
      ...errorResponses(['unauthorized', 'accountDisabled', 'internal', 'overloaded']),
    },
  };
}

export function servicePaths(): OpenApiDocument['paths'] {
  const status: JsonSchema = {
    type: 'object',
    properties: { status: { type: 'string' } },
    required: ['status'],
  };
  const open = (operation: Pick<Operation, 'operationId' | 'summary' | 'responses'>) => ({
    get: { ...operation, tags: ['Service'], security: [] },
  });
  const answer = (
    description: string,
    type: string,
    { schema, examples: named }: MediaType,
  ): ResponseObject => ({
    description,
    headers: requestIdHeader,
    content: { [type]: { schema, ...(named && { examples: named }) } },
  });
  // All that can be wrong with such a request are its headers.
  const errors = errorResponses(['invalidParameter', 'internal']);
  const text: JsonSchema = { type: 'string' };
  const says = (word: string) => ({ plain: { value: { status: word } } });
  return {
    '/livez': open({
      operationId: 'getLiveness',
      summary: 'Whether the process runs',
      responses: {
        200: answer('It runs.', 'application/json', { schema: status, examples: says('alive') }),
        ...errors,
      },
    }),
    '/readyz': open({
      operationId: 'getReadiness',
      summary: 'Whether the database, the queue and a worker for each model answer',
      responses: {
        200: answer('They do.', 'application/json', { schema: status, examples: says('ready') }),
        ...errors,
        ...errorResponses(['overloaded']),
      },
    }),
    '/metrics': open({
      operationId: 'getMetrics',
      summary: 'Counters for Prometheus',
      responses: {
        200: answer('The metrics.', 'text/plain', { schema: text, examples: examples.metrics }),
        ...errors,
      },
    }),
    '/openapi.json': open({
      operationId: 'getDescription',
      summary: 'This description',
      responses: {
        200: answer('An OpenAPI document.', 'application/json', { schema: { type: 'object' } }),
        ...errors,
      },
    }),
    '/docs': open({
      operationId: 'getDocumentation',
      summary: 'This description as a page',
      responses: { 200: answer('A page.', 'text/html', { schema: text }), ...errors },
    }),
  };
}

function json(name: ComponentName, named: Readonly<Record<string, Example>>): Operation['requestBody'] {
  return { required: true, content: { 'application/json': { schema: refer(name), examples: named } } };
}
