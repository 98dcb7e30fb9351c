import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What an operator runs to hear of notices; a test decides how it answers. */
export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  answer: (response: ServerResponse) => void = (response) => void response.end('ok');
  #heard = () => {};
  readonly #server = createServer(async (request, response) => {
    const body = await text(request);
    this.received.push({ path: request.url!, headers: request.headers, body });
    this.answer(response);
    this.#heard();
  });

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  /** Resolves with what was received once there is so much of it. */
  async count(count: number): Promise<readonly Received[]> {
    while (this.received.length < count) {
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
    return this.received;
  }

  /** Answers with a status and nothing else from now on. */
  answerWith(status: number, headers: Record<string, string> = {}): void {
    this.answer = (response) => void response.writeHead(status, headers).end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
