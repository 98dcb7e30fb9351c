import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ErrorKind, errorBodySchema, errorTable } from '../../src/contract/errors.js';
import { errorBody } from '../support/error-body.js';
import { dataOf } from './support/raw-responses.js';
import {
  authorization,
  chatRequest,
  rerankRequest,
  startTestService,
  type TestService,
} from './support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

const kinds = Object.keys(errorTable) as ErrorKind[];
/** A worker says no more than this of its own inside. */
const shown = (kind: ErrorKind) => (kind === 'internal' ? errorTable.internal.message : 'told by the worker');

type Answer = Awaited<ReturnType<TestService['app']['inject']>>;

/** How a client meets an error without a worker. */
const requests: Partial<Record<ErrorKind, () => Promise<Answer>>> = {
  modelNotFound: () => service.app.inject(chatRequest({ model: 'nobody' })),
  invalidParameter: () => service.app.inject(chatRequest({ temperature: 3 })),
  unauthorized: () => service.app.inject(chatRequest({}, { authorization: 'Bearer sk-wrong' })),
  accountDisabled: () => {
    service.database.addKey('sk-disabled', { account: { disabled: true, verified: false } });
    return service.app.inject(chatRequest({}, { authorization: 'Bearer sk-disabled' }));
  },
  routeNotFound: () => service.app.inject({ url: '/v1/nothing', headers: { authorization } }),
  methodNotAllowed: () => service.app.inject({ url: '/v1/rerank', headers: { authorization } }),
  bodyTooLarge: () => service.app.inject(rerankRequest({ query: 'x'.repeat(1 << 20) })),
  unsupportedMediaType: () => service.app.inject(chatRequest({}, { 'content-type': 'text/plain' })),
  internal: () => {
    service.backplane.queue('tiny-chat').add = () => {
      throw new Error('secret detail');
    };
    return service.app.inject(chatRequest());
  },
  overloaded: () => {
    service.database.away = true;
    return service.app.inject(chatRequest());
  },
  deadlineExceeded: async () => {
    const hasty = await startTestService({ config: { requestTimeoutMs: 1 } });
    const answer = await hasty.app.inject(chatRequest());
    await hasty.close();
    return answer;
  },
};

function expectRow(kind: ErrorKind, { statusCode, headers, body }: Answer, message?: string): void {
  const { status, code } = errorTable[kind];
  expect(statusCode).toBe(status);
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(headers['x-request-id']).toBeDefined();
  expect('retry-after' in headers).toBe(status === 429 || status === 503);
  const parsed = errorBodySchema.strict().parse(JSON.parse(body));
  expect(parsed.code).toBe(code);
  if (message !== undefined) expect(parsed.message).toBe(message);
}

describe('the row of the error table', () => {
  it.each(Object.keys(requests) as ErrorKind[])('%s is met by a client', async (kind) => {
    expectRow(kind, await requests[kind]!());
  });

  it.each(kinds)('%s is what a chat request is answered with when it ends in that', async (kind) => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.fail(kind, 'told by the worker');
    expectRow(kind, await answer, shown(kind));
  });

  it.each(kinds)('%s is what a rerank request is answered with when it ends in that', async (kind) => {
    const answer = service.app.inject(rerankRequest());
    const run = await service.rerank.next();
    await run.start();
    await run.fail(kind, 'told by the worker');
    expectRow(kind, await answer, shown(kind));
  });

  it.each(kinds)('%s is an ordinary response to a stream that has not begun', async (kind) => {
    const answer = service.app.inject(chatRequest({ stream: true }));
    const run = await service.chat.next();
    await run.start();
    await run.fail(kind, 'told by the worker');
    expectRow(kind, await answer, shown(kind));
  });

  it.each(kinds)('%s is the last event of a stream that has begun', async (kind) => {
    const answer = service.app.inject(chatRequest({ stream: true }));
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    // The text goes out before the error comes.
    await new Promise((resolve) => setImmediate(resolve));
    await run.fail(kind, 'told by the worker');
    const { statusCode, body } = await answer;
    expect(statusCode).toBe(200);
    expect(JSON.parse(dataOf(body).at(-1)!)).toEqual(errorBody(errorTable[kind].code, shown(kind)));
    expect(body).not.toContain('[DONE]');
  });
});
