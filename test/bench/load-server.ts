import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the server under test got it. */
export interface Received {
  readonly path: string;
  readonly authorization: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: the fields are what the tests are about
  readonly body: any;
}

export interface LoadServer {
  readonly url: string;
  readonly received: readonly Received[];
  close(): Promise<void>;
}

/** A local server that answers as `answer` does and remembers what it was asked. */
export async function startLoadServer(
  answer: (request: Received, response: ServerResponse) => void,
): Promise<LoadServer> {
  const received: Received[] = [];
  const server = createServer((incoming, response) => {
    void readBody(incoming).then((text) => {
      const { url: path = '', headers } = incoming;
      const request = {
        path,
        authorization: headers.authorization,
        body: text === '' ? undefined : JSON.parse(text),
      };
      received.push(request);
      answer(request, response);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** One event of a stream. */
export function event(data: unknown): string {
  return `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

export function delta(content: string): unknown {
  return { choices: [{ index: 0, delta: { content }, finish_reason: null }] };
}
