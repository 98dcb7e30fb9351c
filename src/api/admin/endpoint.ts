import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { ErrorKind } from '../../contract/errors.js';
import type { ChangeContext } from '../../platform/change.js';
import type { JsonSchema, MediaType, OpenApiDocument, Operation, Parameter } from '../openapi/document.js';
import { errorResponses, requestIdHeader } from '../openapi/responses.js';
import { validate } from '../validate.js';
import { exampleOf } from './examples.js';

/** What an endpoint is given: its parts parsed, and in whose name it changes things. */
interface Call<Body extends z.ZodType, Query extends z.ZodObject> {
  /** The last part of the path; empty where there is none. */
  readonly id: string;
  readonly body: z.output<Body>;
  readonly query: z.output<Query>;
  readonly context: ChangeContext;
}

/** One endpoint of the administration: its route and its description come from here. */
export interface Endpoint {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** As OpenAPI writes it. */
  readonly path: string;
  readonly operation: Operation;
  readonly answer: (request: FastifyRequest, id: string, context: ChangeContext) => Promise<unknown>;
}

const nothing = z.object({});

/** A schema of the contract that has a name of its own in the description. */
export type NamedSchema = z.ZodType;

type Answers = { one: NamedSchema } | { many: NamedSchema } | { page: NamedSchema };

/**
 * Describes and implements one endpoint. `one`, `many` and `page` are the schema of what it answers with. One that
 * answers with a page is given a `limit` that is one more than is shown, to tell whether there are more.
 */
export function endpoint<
  Body extends z.ZodType = typeof nothing,
  Query extends z.ZodObject = typeof nothing,
>(options: {
  method: Endpoint['method'];
  path: string;
  operationId: string;
  summary: string;
  description?: string;
  body?: Body;
  query?: Query;
  answers: Answers;
  run: (call: Call<Body, Query>) => Promise<unknown>;
}): Endpoint {
  const { method, path, body, query, answers, run, ...words } = options;
  const kinds: ErrorKind[] = ['unauthorized', 'routeNotFound', 'rpmLimit', 'internal', 'overloaded'];
  if (body !== undefined || query !== undefined || path.includes('{id}')) kinds.unshift('invalidParameter');
  if (body !== undefined) kinds.push('bodyTooLarge', 'unsupportedMediaType');
  return {
    method,
    path,
    operation: {
      ...words,
      tags: ['Administration'],
      security: [{ admin: [] }],
      parameters: [...pathParameters(path), ...queryParameters(query)],
      ...(body && {
        requestBody: {
          required: true,
          content: {
            'application/json': { schema: refer(body), examples: { usual: { value: exampleOf(body) } } },
          },
        },
      }),
      responses: {
        200: {
          description: 'Done.',
          headers: requestIdHeader,
          content: { 'application/json': describeAnswer(answers) },
        },
        ...errorResponses(kinds),
      },
    },
    answer: async (request, id, context) => {
      const asked = validate(query ?? nothing, request.query, 'query') as z.output<Query>;
      const limit = 'page' in answers ? (asked as { limit: number }).limit : undefined;
      const result = await run({
        id,
        body: validate(body ?? nothing, body === undefined ? {} : request.body) as z.output<Body>,
        query: limit === undefined ? asked : { ...asked, limit: limit + 1 },
        context,
      });
      if ('one' in answers) return result;
      const rows = result as unknown[];
      return {
        object: 'list',
        data: rows.slice(0, limit),
        has_more: limit !== undefined && rows.length > limit,
      };
    },
  };
}

/** Adds the routes of endpoints; `contextOf` says in whose name a request changes things. */
export function addEndpoints(
  app: FastifyInstance,
  endpoints: readonly Endpoint[],
  contextOf: (request: FastifyRequest) => ChangeContext,
): void {
  for (const { method, path, answer } of endpoints) {
    // Ids of models may hold slashes; a wildcard takes whatever there is.
    const url = path.replace(/\{id\}$/, '*').replace('{id}', ':id');
    app[method]<{ Params: Record<string, string | undefined> }>(url, async (request) => {
      const { id, '*': rest } = request.params;
      return answer(request, id ?? rest ?? '', contextOf(request));
    });
  }
}

/** The endpoints as the description of the service shows them. */
export function describeEndpoints(endpoints: readonly Endpoint[]): OpenApiDocument['paths'] {
  const paths: Record<string, Partial<Record<Endpoint['method'], Operation>>> = {};
  for (const { method, path, operation } of endpoints) {
    paths[path] = { ...paths[path], [method]: operation };
  }
  return paths;
}

function refer(schema: NamedSchema): JsonSchema {
  return { $ref: `#/components/schemas/${schema.meta()?.id}` };
}

function describeAnswer(answers: Answers): MediaType {
  const [schema] = Object.values(answers) as [NamedSchema];
  const one = exampleOf(schema);
  return 'one' in answers
    ? { schema: refer(schema), examples: { usual: { value: one } } }
    : {
        schema: listOf(refer(schema)),
        examples: { usual: { value: { object: 'list', data: [one], has_more: false } } },
      };
}

function listOf(items: JsonSchema): JsonSchema {
  return {
    type: 'object',
    properties: {
      object: { const: 'list' },
      data: { type: 'array', items },
      has_more: { type: 'boolean', description: 'Whether there are more: ask from the last one on.' },
    },
    required: ['object', 'data', 'has_more'],
  };
}

function pathParameters(path: string): Parameter[] {
  if (!path.includes('{id}')) return [];
  const schema: JsonSchema = { type: 'string' };
  return [{ name: 'id', in: 'path', required: true, description: 'Which one.', schema }];
}

function queryParameters(query: z.ZodObject | undefined): Parameter[] {
  if (query === undefined) return [];
  const { properties = {} } = z.toJSONSchema(query, { io: 'input', unrepresentable: 'any' });
  return Object.entries(properties).map(([name, property]) => {
    const { description = 'Only those of this one.', ...schema } = property as JsonSchema & {
      description?: string;
    };
    return { name, in: 'query', description, schema };
  });
}
