import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { authorization, chatBody } from './test-app.js';

/** Listens on a free port of this machine. */
export async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

/** Sends a chat request over a connection of its own. */
export function sendChat(port: number, body: Record<string, unknown> = {}): ClientRequest {
  const sent = request({
    host: '127.0.0.1',
    port,
    path: '/v1/chat/completions',
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    agent: false,
  });
  sent.on('error', () => {});
  sent.end(JSON.stringify({ ...chatBody, ...body }));
  return sent;
}

export async function responseTo(sent: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  return response.setEncoding('utf8');
}

/** The whole body; what came of it when the connection is cut off. */
export async function bodyOf(response: IncomingMessage): Promise<string> {
  let body = '';
  response.on('data', (text: string) => {
    body += text;
  });
  await once(response, 'close');
  return body;
}

/** Resolves with what has come once it contains `expected`. */
export function bodyUntil(response: IncomingMessage, expected: string): Promise<string> {
  return new Promise((resolve) => {
    let body = '';
    response.on('data', (text: string) => {
      body += text;
      if (body.includes(expected)) resolve(body);
    });
  });
}

/** The bytes of a chat request, for a connection that the test writes to itself. */
export function rawChat(body: Record<string, unknown> = {}, headers: readonly string[] = []): string {
  const payload = JSON.stringify({ ...chatBody, ...body });
  return [
    'POST /v1/chat/completions HTTP/1.1',
    'host: test',
    `authorization: ${authorization}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(payload)}`,
    ...headers,
    '',
    payload,
  ].join('\r\n');
}

/** A connection whose two sides close one by one. */
export async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Resolves with everything the server sends until it closes its side of the connection. */
export async function readToEnd(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('data', (data) => chunks.push(data));
  await Promise.race([once(socket, 'end'), once(socket, 'close')]);
  socket.destroy();
  return Buffer.concat(chunks);
}
