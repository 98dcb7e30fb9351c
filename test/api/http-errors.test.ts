import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorBodySchema } from '../../src/contract/errors.js';
import { errorBody } from '../support/error-body.js';
import { listen, openSocket, rawChat, readToEnd } from './support/sockets.js';
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

function sendText(payload: string | Buffer, headers: Record<string, string> = {}) {
  return service.app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization, 'content-type': 'application/json', ...headers },
    payload,
  });
}

describe('a body that is not JSON', () => {
  it.each([
    ['{"model": "a",\n "messages": [1,]}', /^body: malformed JSON: .*\]/],
    ['{"model": "a",\n  x}', /^body: malformed JSON: .* at line 2, column 3$/],
    ['{"a": 1', /^body: malformed JSON: .* at line 1, column 8$/],
    ['', /^body: /],
    ['nonsense', /^body: malformed JSON: /],
  ])('is 400 and says where: %j', async (text, message) => {
    const response = await sendText(text);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(errorBody(20015, expect.stringMatching(message)));
  });

  it('because it is not UTF-8 is 400', async () => {
    const response = await sendText(Buffer.from([0x7b, 0xff, 0x7d]));
    expect(response.statusCode).toBe(400);
    expect(response.json().message).toBe('body: is not valid UTF-8');
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=a', 'nonsense'])(
    'by its content type %s is 415',
    async (type) => {
      const response = await sendText('{}', { 'content-type': type });
      expect(response.statusCode).toBe(415);
      expect(response.json()).toMatchObject({ code: 20415, data: null });
    },
  );

  it('because it is compressed is 415', async () => {
    const response = await sendText('{}', { 'content-encoding': 'gzip' });
    expect(response.statusCode).toBe(415);
  });

  it('because there is none is 400', async () => {
    const response = await service.app.inject({
      method: 'POST',
      url: '/v1/rerank',
      headers: { authorization },
    });
    expect(response.statusCode).toBe(400);
    expect(response.json().message).toBe('body: is required');
  });
});

describe('a body', () => {
  it('may begin with a byte order mark and name its character set', async () => {
    const response = await sendText('\uFEFF{}', { 'content-type': 'application/json; charset=utf-8' });
    expect(response.json().message).toBe('model: is required');
  });

  it('larger than the limit is 413', async () => {
    const response = await sendText(JSON.stringify({ a: 'x'.repeat(1 << 20) }));
    expect(response.statusCode).toBe(413);
    expect(response.json()).toMatchObject({ code: 20042, data: null });
  });

  it('that is nested deeply is answered', async () => {
    const depth = 100_000;
    const response = await sendText(`{"metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`);
    expect(response.statusCode).toBe(400);
  });
});

describe('a path or a method that is not there', () => {
  it.each(['/nothing', '/v1/nothing', '/v1', '/v2/chat/completions', '/v1/chat', '/%2e%2e/x'])(
    '%s is 404',
    async (url) => {
      const response = await service.app.inject({
        method: 'POST',
        url,
        headers: { authorization },
        payload: 'x',
      });
      expect(response.statusCode).toBe(404);
      expect(response.json()).toEqual(errorBody(20404, 'There is no such route.'));
    },
  );

  it.each([
    ['GET', '/v1/chat/completions', 'OPTIONS, POST'],
    ['DELETE', '/v1/rerank?x=1', 'OPTIONS, POST'],
    ['PUT', '/rerank', 'OPTIONS, POST'],
    ['POST', '/v1/models', 'GET, HEAD, OPTIONS'],
    ['POST', '/v1/models/owner/name', 'GET, HEAD, OPTIONS'],
    ['PATCH', '/livez', 'GET, HEAD, OPTIONS'],
  ] as const)('%s %s is 405 and says what is allowed', async (method, url, allow) => {
    const response = await service.app.inject({ method, url, headers: { authorization } });
    expect(response.statusCode).toBe(405);
    expect(response.headers.allow).toBe(allow);
    expect(response.json()).toMatchObject({ code: 20405, data: null });
  });

  it('OPTIONS says what is allowed, without a key', async () => {
    const response = await service.app.inject({ method: 'OPTIONS', url: '/v1/chat/completions' });
    expect(response.statusCode).toBe(204);
    expect(response.headers.allow).toBe('OPTIONS, POST');
  });

  it('HEAD is answered where GET is', async () => {
    const response = await service.app.inject({ method: 'HEAD', url: '/livez' });
    expect(response.statusCode).toBe(200);
    expect(response.body).toBe('');
  });

  it('a path that cannot be decoded is 400', async () => {
    const response = await service.app.inject({ method: 'GET', url: '/%zz' });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: 20015, data: null });
    expect(response.headers['x-request-id']).toBeDefined();
  });
});

describe('a request without a key', () => {
  it.each([
    ['POST', '/v1/chat/completions'],
    ['POST', '/chat/completions'],
    ['POST', '/v1/rerank'],
    ['POST', '/rerank'],
    ['GET', '/v1/models'],
    ['GET', '/v1/models/tiny-chat'],
    ['GET', '/v1/nothing'],
    ['DELETE', '/v1/chat/completions'],
    ['POST', '/%761/chat/completions'],
    ['POST', '//v1/chat/completions'],
  ] as const)('%s %s is 401 before anything else, or finds nothing', async (method, url) => {
    const response = await service.app.inject({
      method,
      url,
      headers: { 'content-type': 'text/plain' },
      payload: method === 'GET' ? undefined : 'not JSON',
    });
    expect(response.statusCode).toBe(url.startsWith('//') ? 404 : 401);
    errorBodySchema.parse(response.json());
  });

  it('is told how to authenticate', async () => {
    const response = await service.app.inject({ method: 'GET', url: '/v1/models' });
    expect(response.headers['www-authenticate']).toBe('Bearer');
    expect(response.json()).toMatchObject({ code: 20001, data: null });
  });

  it('is not read when its body is too large', async () => {
    const payload = 'x'.repeat(2 << 20);
    const response = await service.app.inject({ method: 'POST', url: '/v1/rerank', payload });
    expect(response.statusCode).toBe(401);
  });
});

describe('a service that cannot answer', () => {
  it('hides what went wrong inside', async () => {
    service.backplane.queue('tiny-chat').add = () => {
      throw new Error('secret detail');
    };
    const response = await service.app.inject(chatRequest());
    expect(response.statusCode).toBe(500);
    expect(response.json()).toEqual(errorBody(50500, 'Unknown error.'));
    expect(JSON.stringify(service.log)).toContain('secret detail');
  });

  it('is 503 with a time to wait when the database is away', async () => {
    service.database.away = true;
    const response = await service.app.inject(chatRequest());
    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
    expect(response.json()).toMatchObject({ code: 50505, data: null });
  });

  it.each(['add', 'depth'] as const)('is 503 when the queue does not answer to %s', async (operation) => {
    service.backplane.queue('tiny-chat')[operation] = async () => {
      throw new Error('away');
    };
    const response = await service.app.inject(chatRequest());
    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
  });

  it('is 503 while the queue is full, and not after', async () => {
    const full = await startTestService({ config: { maxQueueDepth: 1 } });
    const [waiting] = [full.app.inject(chatRequest({ model: 'owner/seeing-chat' }))];
    while (full.backplane.queue('owner/seeing-chat').waiting.length === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const refused = await full.app.inject(chatRequest({ model: 'owner/seeing-chat' }));
    expect(refused.statusCode).toBe(503);
    expect(refused.json()).toMatchObject({ code: 50505 });
    const elsewhere = full.app.inject(rerankRequest());
    const run = await full.rerank.next();
    await run.start();
    await run.rank([1, 2, 3]);
    expect((await elsewhere).statusCode).toBe(200);
    await full.close();
    expect((await waiting!).statusCode).toBe(503);
  });

  it.each([false, true])('is 504 at the deadline, and the job is cancelled (stream: %s)', async (stream) => {
    const hasty = await startTestService({ config: { requestTimeoutMs: 30 } });
    const answer = hasty.app.inject(chatRequest({ stream }));
    const run = await hasty.chat.next();
    await run.start();
    const response = await answer;
    expect(response.statusCode).toBe(504);
    expect(response.json()).toMatchObject({ code: 50504, data: null });
    await run.cancelled;
    await run.cancel({ promptTokens: 7 });
    const [entry] = await hasty.database.entriesWritten();
    expect(entry).toMatchObject({ status: 504, finishReason: 'deadlineExceeded', promptTokens: 7 });
    await hasty.close();
  });
});

describe('x-request-id', () => {
  it.each(['abc', 'A-b_c.d:9', 'x'.repeat(128)])('is the caller’s own when it is sane: %s', async (id) => {
    const response = await service.app.inject({ url: '/livez', headers: { 'x-request-id': id } });
    expect(response.headers['x-request-id']).toBe(id);
  });

  it.each(['', 'a b', 'a\tb', 'x'.repeat(129), 'é', '<script>'])('is a new one instead of %j', async (id) => {
    const response = await service.app.inject({ url: '/nothing', headers: { 'x-request-id': id } });
    expect(response.headers['x-request-id']).toMatch(/^[0-9a-f]{24}$/);
  });

  it('is in the log beside the id of the reply', async () => {
    const answer = service.app.inject(chatRequest({}, { 'x-request-id': 'mine' }));
    const run = await service.chat.next();
    await run.start();
    await run.finish();
    await answer;
    await service.database.entriesWritten();
    expect(service.log).toContainEqual(expect.objectContaining({ reqId: 'mine', id: run.job.id }));
  });
});

describe('a connection', () => {
  it('that does not speak HTTP gets an error body and is closed', async () => {
    const socket = await openSocket(await listen(service.app));
    const answer = readToEnd(socket);
    socket.write('NONSENSE\r\n\r\n');
    const [head, body] = (await answer).toString().split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 400 /);
    expect(head).toContain('x-request-id: ');
    expect(JSON.parse(body!)).toMatchObject({ code: 20015, data: null });
  });

  it('may carry requests one behind the other, answered in order', async () => {
    const socket = await openSocket(await listen(service.app));
    const answer = readToEnd(socket);
    socket.write(rawChat() + rawChat({}, ['connection: close']));
    const [first, second] = [await service.chat.next(), await service.chat.next()];
    for (const [run, text] of [
      [second, 'two'],
      [first, 'one'],
    ] as const) {
      await run.start();
      await run.text(text);
      await run.finish();
    }
    expect((await answer).toString().match(/"content":"\w+"/g)).toEqual([
      '"content":"one"',
      '"content":"two"',
    ]);
  });
});
