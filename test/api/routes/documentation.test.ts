import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { OpenApiDocument, Operation } from '../../../src/api/openapi/document.js';
import { chatChunkSchema, chatRequestSchema, chatResponseSchema } from '../../../src/contract/chat.js';
import { errorBodySchema, errorTable } from '../../../src/contract/errors.js';
import { modelListSchema, modelSchema } from '../../../src/contract/models.js';
import { rerankRequestSchema, rerankResponseSchema } from '../../../src/contract/rerank.js';
import { startTestService, type TestService } from '../support/test-app.js';

let service: TestService;
let document: OpenApiDocument;
beforeEach(async () => {
  service = await startTestService();
  document = (await service.app.inject({ url: '/openapi.json' })).json();
});
afterEach(() => service.close());

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );

/** Every `$ref` anywhere inside. */
function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : references(inner),
  );
}

describe('/openapi.json', () => {
  it('is OpenAPI 3.1 of this version', () => {
    expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } });
  });

  it('describes exactly the routes there are', async () => {
    for (const { path, method } of operations()) {
      const response = await service.app.inject({
        method: method === 'post' ? 'POST' : 'GET',
        url: path.replace('{id}', 'tiny-chat'),
      });
      expect([200, 401, 503], `${method} ${path}`).toContain(response.statusCode);
    }
    const routes = service.app.printRoutes({ commonPrefix: false });
    expect(routes.match(/\((GET, HEAD|POST)\)/g)).toHaveLength(
      operations().length + ['/chat/completions', '/rerank', '/v2/rerank'].length,
    );
  });

  it('refers only to schemas that it contains', () => {
    const names = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect(references(document)).not.toEqual([]);
    for (const reference of references(document)) expect(names).toContain(reference);
  });

  it('has an id of its own for every operation', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('lists every error of the two operations with its code', () => {
    for (const path of ['/v1/chat/completions', '/v1/rerank']) {
      const { responses } = document.paths[path]!.post!;
      for (const [kind, { status, code }] of Object.entries(errorTable)) {
        if (status === 404 || status === 405) continue;
        const example = responses[status]!.content!['application/json']!.examples![kind]!;
        expect(errorBodySchema.parse(example.value).code).toBe(code);
      }
    }
  });

  it('asks for a key under /v1 and nowhere else', () => {
    expect(document.security).toEqual([{ key: [] }]);
    for (const { path, operation } of operations()) {
      expect(operation.security, path).toEqual(path.startsWith('/v1/') ? undefined : []);
    }
  });

  it('describes requests by the schemas that check them', () => {
    const schema = document.components.schemas['ChatCompletionRequest']!;
    expect(Object.keys(schema['properties'] as object)).toEqual(Object.keys(chatRequestSchema.shape));
    expect(schema['required']).toEqual(['model', 'messages']);
  });

  it.each<[string, 'get' | 'post', z.ZodType | undefined, z.ZodType]>([
    ['/v1/chat/completions', 'post', chatRequestSchema, chatResponseSchema],
    ['/v1/rerank', 'post', rerankRequestSchema, rerankResponseSchema],
    ['/v1/models', 'get', undefined, modelListSchema],
    ['/v1/models/{id}', 'get', undefined, modelSchema],
  ])('shows examples of %s that fit the contract', (path, method, requestSchema, responseSchema) => {
    const { requestBody, responses } = document.paths[path]![method] as Operation;
    const requests = Object.values(requestBody?.content['application/json']?.examples ?? {});
    const answers = Object.values(responses[200]!.content!['application/json']!.examples!);
    expect(answers).not.toEqual([]);
    expect(requests.length > 0).toBe(requestSchema !== undefined);
    for (const { value } of requests) requestSchema!.parse(value);
    for (const { value } of answers) responseSchema.parse(value);
  });

  it('shows a stream whose events fit the contract', () => {
    const { content } = document.paths['/v1/chat/completions']!.post!.responses[200]!;
    const text = z.string().parse(content!['text/event-stream']!.examples!['stream']!.value);
    const data = text.split('\n\n').map((event) => event.replace(/^data: /, ''));
    expect(data.splice(-2)).toEqual(['[DONE]', '']);
    for (const chunk of data) chatChunkSchema.parse(JSON.parse(chunk));
  });
});

describe('/docs', () => {
  it('shows every operation, schema and field', async () => {
    const { body, headers } = await service.app.inject({ url: '/docs' });
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    for (const { path, operation } of operations()) {
      expect(body).toContain(`id="${operation.operationId}"`);
      expect(body).toContain(`<code>${path}</code>`);
    }
    for (const name of Object.keys(document.components.schemas))
      expect(body).toContain(`id="schema-${name}"`);
    for (const field of [
      ...Object.keys(chatRequestSchema.shape),
      'stream_options.include_usage',
      'results[].index',
    ]) {
      expect(body).toContain(`<code>${field}</code>`);
    }
  });

  it('leads only to places on the page and in this service', async () => {
    const { body } = await service.app.inject({ url: '/docs' });
    const links = [...body.matchAll(/href="([^"]*)"/g)].map(([, link]) => link!);
    expect(links).not.toEqual([]);
    for (const link of links) {
      if (link !== '/openapi.json') expect(body).toContain(`id="${link.slice(1)}"`);
    }
  });

  it('loads nothing, and is not allowed to', async () => {
    const { body, headers } = await service.app.inject({ url: '/docs' });
    expect(body).not.toMatch(/<(script|link|img|iframe)|url\(|@import| src=/);
    const style = /<style>([\s\S]*)<\/style>/.exec(body)![1]!;
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toContain(`default-src 'none'; style-src 'sha256-${hash}'`);
  });

  it('escapes what the examples contain', async () => {
    const { body } = await service.app.inject({ url: '/docs' });
    expect(body).toContain('&#34;role&#34;: &#34;user&#34;');
  });
});
