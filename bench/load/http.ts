import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { readErrorMessage } from './chunk.js';

/** The server answered with something other than 200. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly status: number,
    /** What the server says about it. */
    readonly reason: string,
  ) {
    super(`HTTP ${status}: ${reason}`);
  }
}

/** Sends requests to one server over connections that are kept. */
export class HttpClient {
  readonly #module: typeof http | typeof https;
  readonly #agent: http.Agent;

  /** `url` is that of the service, without `/v1`. */
  constructor(
    readonly url: string,
    readonly key: string | undefined,
  ) {
    this.#module = url.startsWith('https:') ? https : http;
    this.#agent = new this.#module.Agent({ keepAlive: true, noDelay: true });
  }

  /**
   * Resolves with the response once its head is there; its body is the caller's to read.
   * @throws HttpError when the status is not 200; Error when there is no answer.
   */
  async request(path: string, options: { body?: string; signal: AbortSignal }): Promise<IncomingMessage> {
    const response = await this.#send(path, options);
    if (response.statusCode === 200) return response;
    throw new HttpError(response.statusCode!, readErrorMessage(await readBody(response)));
  }

  #send(path: string, { body, signal }: { body?: string; signal: AbortSignal }): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = this.#module.request(`${this.url}${path}`, {
        agent: this.#agent,
        signal,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...(this.key === undefined ? {} : { authorization: `Bearer ${this.key}` }),
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        },
      });
      request.once('response', resolve).once('error', (error: NodeJS.ErrnoException) => {
        // The server had closed a connection that it had offered to keep, as llama.cpp's does after every stream.
        if (request.reusedSocket && error.code === 'ECONNRESET') resolve(this.#send(path, { body, signal }));
        else reject(error);
      });
      request.end(body);
    });
  }

  /** Gives the connections back. */
  close(): void {
    this.#agent.destroy();
  }
}

export async function readBody(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}
