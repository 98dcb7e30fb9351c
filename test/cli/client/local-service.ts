import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Terminal } from '../../../src/cli/client/terminal.js';
import { ServiceError } from '../../../src/contract/errors.js';

export interface ReceivedRequest {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void | Promise<void>;

/** A service on a free port whose answers a test decides, route by route. */
export class LocalService implements AsyncDisposable {
  readonly received: ReceivedRequest[] = [];
  readonly #answers: Record<string, Answer>;
  readonly #server = createServer(async (request, response) => {
    const body = await text(request);
    const { method, url, headers } = request;
    this.received.push({
      method,
      url,
      authorization: headers.authorization,
      body: body === '' ? undefined : JSON.parse(body),
    });
    await (this.#answers[`${method} ${url}`] ?? noSuchRoute)(response, request);
  });

  private constructor(answers: Record<string, Answer>) {
    this.#answers = answers;
  }

  static async start(answers: Record<string, Answer>): Promise<LocalService> {
    const service = new LocalService(answers);
    service.#server.listen(0, '127.0.0.1');
    await once(service.#server, 'listening');
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

const noSuchRoute = json(new ServiceError('routeNotFound').toBody(), 404);

export function json(body: unknown, status = 200): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
}

/** Sends the pieces one by one, each once the one before has left, and then ends. */
export function pieces(parts: ReadonlyArray<string | Uint8Array>): Answer {
  return async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const part of parts) await new Promise((resolve) => response.write(part, resolve));
    response.end();
  };
}

export function models(...ids: string[]): Answer {
  const model = {
    object: 'model',
    created: 0,
    owned_by: 'headrace',
    type: 'text',
    sub_type: 'chat',
    context_length: 64,
    capabilities: [],
  };
  return json({ object: 'list', data: ids.map((id) => ({ ...model, id })) });
}

/** A terminal that a test reads from; `input` is what was typed, null when nothing ever will be. */
export class TestTerminal implements Terminal {
  readonly stdin: PassThrough;
  readonly stdout: Terminal['stdout'];
  readonly stderr: Terminal['stderr'];

  constructor({
    input = '',
    isTTY,
    columns,
  }: { input?: string | null; isTTY?: boolean; columns?: number } = {}) {
    this.stdin = new PassThrough();
    if (input !== null) this.stdin.end(input);
    this.stdout = Object.assign(new PassThrough(), { isTTY, columns });
    this.stderr = Object.assign(new PassThrough(), { isTTY });
  }

  /** What was written to standard output since it was last asked for. */
  get output(): string {
    return String((this.stdout as PassThrough).read() ?? '');
  }

  /** The same of standard error. */
  get errors(): string {
    return String((this.stderr as PassThrough).read() ?? '');
  }
}
