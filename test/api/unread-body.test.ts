import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorBodySchema } from '../../src/contract/errors.js';
import { parseResponses } from './support/raw-responses.js';
import { listen, openSocket, readToEnd } from './support/sockets.js';
import { authorization, startTestService, type TestService } from './support/test-app.js';

let service: TestService;
let port: number;
beforeEach(async () => {
  service = await startTestService();
  port = await listen(service.app);
});
afterEach(() => service.close());

/** More than the test service takes, and than the buffers of a connection hold. */
const bodyBytes = 24 << 20;

const cases = [
  ['too large', 413, 20042, { path: '/v1/chat/completions', type: 'application/json', authorization }],
  ['not JSON', 415, 20415, { path: '/v1/chat/completions', type: 'text/plain', authorization }],
  ['sent without a key', 401, 20001, { path: '/v1/rerank', type: 'application/json', authorization: 'no' }],
  ['sent nowhere', 404, 20404, { path: '/nothing', type: 'application/json', authorization }],
  ['sent with a wrong method', 405, 20405, { path: '/v1/models', type: 'application/json', authorization }],
] as const;

interface Target {
  readonly path: string;
  readonly type: string;
  readonly authorization: string;
}

function head({ path, type, authorization: key }: Target, framing: string): string {
  const lines = [`POST ${path} HTTP/1.1`, 'host: test', `content-type: ${type}`, `authorization: ${key}`];
  return [...lines, framing, '', ''].join('\r\n');
}

async function write(socket: Socket, data: string | Buffer): Promise<void> {
  if (socket.write(data)) return;
  const heard = new AbortController();
  const events = ['drain', 'close'].map((event) => once(socket, event, { signal: heard.signal }));
  await Promise.race(events).catch(() => {});
  heard.abort();
  await Promise.allSettled(events);
}

describe.each(cases)('a body that is %s', (_, status, code, target) => {
  it.each(['content-length', 'chunks'])(
    `is answered with ${status}, also to a client that writes all of it before it reads (%s)`,
    async (framing) => {
      const socket = await openSocket(port);
      const failed = once(socket, 'error').then(([error]) => error as Error);
      const piece = Buffer.alloc(1 << 20, 'x');
      const chunked = framing === 'chunks';
      await write(
        socket,
        head(target, chunked ? 'transfer-encoding: chunked' : `content-length: ${bodyBytes}`),
      );
      for (let sent = 0; sent < bodyBytes; sent += piece.length) {
        if (chunked) await write(socket, `${piece.length.toString(16)}\r\n`);
        await write(socket, piece);
        if (chunked) await write(socket, '\r\n');
      }
      if (chunked) await write(socket, '0\r\n\r\n');
      const bytes = await Promise.race([readToEnd(socket), failed]);
      expect(bytes).toBeInstanceOf(Buffer);
      const responses = parseResponses(bytes as Buffer);
      expect(responses.map((response) => response.status)).toEqual([status]);
      expect(responses[0]!.headers).toMatchObject({
        connection: 'close',
        'x-request-id': expect.any(String),
      });
      expect(errorBodySchema.parse(JSON.parse(responses[0]!.body)).code).toBe(code);
    },
  );

  it('is answered before it has arrived', async () => {
    const socket = await openSocket(port);
    socket.write(head(target, `content-length: ${bodyBytes}`));
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    expect(JSON.parse(parseResponses(bytes)[0]!.body)).toMatchObject({ code });
    socket.destroy();
  });
});

it('a client that goes on sending without an end is cut off', async () => {
  const socket = await openSocket(port);
  socket.resume();
  await write(socket, head(cases[0][3], 'transfer-encoding: chunked'));
  const piece = Buffer.alloc(1 << 20, 'x');
  let sent = 0;
  while (!socket.destroyed && sent < 1 << 30) {
    await write(socket, Buffer.concat([Buffer.from('100000\r\n'), piece, Buffer.from('\r\n')]));
    sent += piece.length;
  }
  expect(sent).toBeLessThan(200 << 20);
});

it('a refusal is counted as what it was, also when its client leaves at once', async () => {
  const socket = await openSocket(port);
  socket.write(head(cases[2][3], `content-length: ${bodyBytes}`));
  await once(socket, 'data');
  socket.destroy();
  const counted = 'headrace_requests_total{operation="rerank",model="",status="401"} 1';
  const scrape = async () => (await service.app.inject({ url: '/metrics' })).body;
  while (!(await scrape()).includes(counted)) await new Promise((resolve) => setImmediate(resolve));
  expect(await scrape()).not.toContain('status="499"');
});
