import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chatRequestSchema } from '../../src/contract/chat.js';
import { type ErrorKind, errorTable } from '../../src/contract/errors.js';
import { rerankRequestSchema } from '../../src/contract/rerank.js';
import { requestBodies } from '../end-to-end/support/request-bodies.js';
import { fc } from '../support/property.js';
import { Description } from './support/description.js';
import {
  authorization,
  chatRequest,
  rerankRequest,
  startTestService,
  type TestService,
} from './support/test-app.js';

let service: TestService;
let description: Description;
beforeEach(async () => {
  service = await startTestService();
  description = new Description((await service.app.inject({ url: '/openapi.json' })).json());
});
afterEach(() => service.close());

const chatPath = '/v1/chat/completions';

describe('the description', () => {
  it('has nothing that a linter would change', async () => {
    expect(await description.problems()).toEqual([]);
  });

  it('shows what every body looks like, and the examples fit their schemas', () => {
    description.expectExamples();
  });

  it('says when to try again wherever that may help', () => {
    for (const methods of Object.values(description.document.paths)) {
      for (const { responses } of Object.values(methods)) {
        for (const [status, { headers = {} }] of Object.entries(responses)) {
          expect('retry-after' in headers).toBe(status === '429' || status === '503');
          expect(headers).toHaveProperty('x-request-id');
        }
      }
    }
  });

  it.each([
    ['ChatCompletionRequest', chatRequestSchema, requestBodies.chat],
    ['RerankRequest', rerankRequestSchema, requestBodies.rerank],
  ] as const)('of %s takes every body that the service takes', (name, schema, bodies) => {
    let taken = 0;
    const json = bodies.filter((text) => {
      try {
        return schema.safeParse(JSON.parse(text)).success;
      } catch {
        return false;
      }
    });
    fc.assert(
      fc.property(json, (text) => {
        taken++;
        expect(description.errors({ $ref: `#/components/schemas/${name}` }, JSON.parse(text))).toBe('');
      }),
      { numRuns: 300 },
    );
    expect(taken).toBeGreaterThan(0);
  });

  it.each([
    ['no model', { messages: [{ role: 'user', content: 'a' }] }],
    ['no messages', { model: 'm', messages: [] }],
    ['an unknown role', { model: 'm', messages: [{ role: 'robot', content: 'a' }] }],
    ['a number as a string', { model: 'm', messages: [{ role: 'user', content: 'a' }], max_tokens: '5' }],
    ['a temperature beyond 2', { model: 'm', messages: [{ role: 'user', content: 'a' }], temperature: 2.5 }],
    ['five stop sequences', { model: 'm', messages: [{ role: 'user', content: 'a' }], stop: [...'abcde'] }],
    ['a part of an unknown type', { model: 'm', messages: [{ role: 'user', content: [{ type: 'x' }] }] }],
  ])('of a chat request does not take one with %s', (_what, body) => {
    expect(description.errors({ $ref: '#/components/schemas/ChatCompletionRequest' }, body)).not.toBe('');
  });
});

describe('a response is as described:', () => {
  it('a whole chat reply', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    await run.finish();
    const response = await answer;
    expect(response.statusCode).toBe(200);
    description.expectDescribed(chatPath, 'post', response);
  });

  it.each(['that ends', 'that fails'])('a stream %s', async (how) => {
    const answer = service.app.inject(chatRequest({ stream: true, stream_options: { include_usage: true } }));
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    await new Promise((resolve) => setImmediate(resolve));
    if (how === 'that ends') await run.finish('length');
    else await run.fail('overloaded', 'No memory is left.');
    const response = await answer;
    expect(response.body).toContain(how === 'that ends' ? '[DONE]' : '50505');
    description.expectDescribed(chatPath, 'post', response);
  });

  it('a ranking', async () => {
    const answer = service.app.inject(rerankRequest({ return_documents: true }));
    const run = await service.rerank.next();
    await run.start();
    await run.rank([0.5, 0.25, 1]);
    description.expectDescribed('/v1/rerank', 'post', await answer);
  });

  const ofOperations = (Object.keys(errorTable) as ErrorKind[]).filter(
    (kind) => kind !== 'routeNotFound' && kind !== 'methodNotAllowed',
  );
  it.each(ofOperations)('the error %s of either operation', async (kind) => {
    const answers = [service.app.inject(chatRequest()), service.app.inject(rerankRequest())];
    for (const worker of [service.chat, service.rerank]) {
      const run = await worker.next();
      await run.start();
      await run.fail(kind, 'it cannot be done');
    }
    description.expectDescribed(chatPath, 'post', await answers[0]!);
    description.expectDescribed('/v1/rerank', 'post', await answers[1]!);
  });

  it.each([
    ['a request without a key', { authorization: '' }],
    ['a body that is no JSON', { 'content-type': 'text/plain' }],
  ])('the refusal of %s', async (_what, headers) => {
    const response = await service.app.inject(chatRequest({}, headers));
    expect(response.statusCode).toBeGreaterThan(400);
    description.expectDescribed(chatPath, 'post', response);
  });

  it.each([
    ['/v1/models', '/v1/models', 200],
    ['/v1/models?type=image', '/v1/models', 400],
    ['/v1/models/tiny-chat', '/v1/models/{id}', 200],
    ['/v1/models/nobody', '/v1/models/{id}', 400],
    ['/v1/notices', '/v1/notices', 200],
    ['/v1/notices?limit=0', '/v1/notices', 400],
    ['/v1/notices.atom', '/v1/notices.atom', 200],
    ['/v1/usage', '/v1/usage', 200],
    ['/v1/usage?group_by=colour', '/v1/usage', 400],
    ['/livez', '/livez', 200],
    ['/readyz', '/readyz', 503],
    ['/metrics', '/metrics', 200],
    ['/openapi.json', '/openapi.json', 200],
    ['/docs', '/docs', 200],
  ])('GET %s', async (url, path, status) => {
    const response = await service.app.inject({ url, headers: { authorization } });
    expect(response.statusCode).toBe(status);
    description.expectDescribed(path, 'get', response);
  });

  it('readiness', async () => {
    const worker = { role: 'worker', id: 'w', leaving: false, model: 'm', held: 0, running: 0 } as const;
    const ready = await startTestService({ presence: { workersOf: () => [worker] } });
    const response = await ready.app.inject({ url: '/readyz' });
    expect(response.statusCode).toBe(200);
    description.expectDescribed('/readyz', 'get', response);
    await ready.close();
  });

  it('a table of usage', async () => {
    const response = await service.app.inject({
      url: '/v1/usage',
      headers: { authorization, accept: 'text/csv' },
    });
    expect(response.headers['content-type']).toContain('text/csv');
    description.expectDescribed('/v1/usage', 'get', response);
  });
});
