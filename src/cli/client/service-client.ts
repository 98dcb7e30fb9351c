import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { ChatChunk, ChatRequest, ChatResponse } from '../../contract/chat.js';
import { chatChunkSchema, chatResponseSchema } from '../../contract/chat.js';
import { errorBodySchema } from '../../contract/errors.js';
import type { Model } from '../../contract/models.js';
import { modelListSchema } from '../../contract/models.js';
import type { RerankRequest, RerankResponse } from '../../contract/rerank.js';
import { rerankResponseSchema } from '../../contract/rerank.js';
import { readEvents } from './server-sent-events.js';
import { readText } from './terminal.js';

/** The service could not be asked, or said no; the message is for the person at the terminal. */
export class ServiceClientError extends Error {
  override readonly name = 'ServiceClientError';
}

export interface ServiceAddress {
  /** Without `/v1` and without a slash at the end. */
  readonly url: string;
  readonly key: string;
  /** Where the key was found, in words: said when it is refused, since the key itself never is. */
  readonly keyOrigin: string;
}

/**
 * Asks a running service. Every method throws {@link ServiceClientError}, or the signal's reason once it aborts.
 *
 * Uses node:http because the built-in fetch gives up on a reply that starts after five minutes, and a long answer
 * in one piece may.
 */
export class ServiceClient {
  readonly #address: ServiceAddress;

  constructor(address: ServiceAddress) {
    this.#address = address;
  }

  /** The models that are online. */
  async models(subType: Model['sub_type'], signal: AbortSignal): Promise<readonly Model[]> {
    const response = await this.#send('GET', `/v1/models?type=text&sub_type=${subType}`, undefined, signal);
    return parse(modelListSchema, await readJson(response, signal)).data;
  }

  async chat(request: ChatRequest, signal: AbortSignal): Promise<ChatResponse> {
    const body = { ...request, stream: false };
    const response = await this.#send('POST', '/v1/chat/completions', body, signal);
    return parse(chatResponseSchema, await readJson(response, signal));
  }

  /** The chunks of a streamed reply, as they come, up to its proper end. */
  async *streamChat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatChunk> {
    const body = { ...request, stream: true };
    const response = await this.#send('POST', '/v1/chat/completions', body, signal);
    try {
      for await (const data of readEvents(response)) {
        if (data === '[DONE]') return;
        const event = parseJson(data);
        const error = errorBodySchema.safeParse(event);
        if (error.success) throw refusal(undefined, error.data);
        yield parse(chatChunkSchema, event);
      }
    } catch (error) {
      if (error instanceof ServiceClientError) throw error;
      throw cutOff(error, signal);
    } finally {
      response.destroy();
    }
    throw cutOff(undefined, signal);
  }

  async rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankResponse> {
    const response = await this.#send('POST', '/v1/rerank', request, signal);
    return parse(rerankResponseSchema, await readJson(response, signal));
  }

  async #send(
    method: 'GET' | 'POST',
    path: string,
    body: unknown,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { url, key, keyOrigin } = this.#address;
    signal.throwIfAborted();
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const target = new URL(url + path);
      const send = target.protocol === 'https:' ? httpsRequest : httpRequest;
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${key}`,
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      };
      // An agent of its own would keep the connection, and with it the process, alive after the reply.
      send(target, { method, headers, signal, agent: false }, resolve).on('error', reject).end(text);
    }).catch((error: NodeJS.ErrnoException) => {
      signal.throwIfAborted();
      throw unreachable(url, error);
    });
    if (response.statusCode === 200) return response;
    const answer = errorBodySchema.safeParse(parseJson(await readReply(response, signal)));
    throw refusal(response.statusCode, answer.data, response.statusCode === 401 ? keyOrigin : undefined);
  }
}

function unreachable(url: string, error: NodeJS.ErrnoException): ServiceClientError {
  const reason = error.code === 'ECONNREFUSED' ? '' : ` (${error.message || error.code})`;
  return new ServiceClientError(
    `No service answers at ${url}${reason}. Start one with "npm start" or "headrace serve", ` +
      'or name another with --url or HEADRACE_URL.',
    { cause: error },
  );
}

function refusal(
  status: number | undefined,
  body: { code: number; message: string } | undefined,
  keyOrigin?: string,
): ServiceClientError {
  const number = [status === undefined ? '' : `HTTP ${status}`, body === undefined ? '' : `code ${body.code}`]
    .filter((part) => part !== '')
    .join(', ');
  const message = body?.message ?? 'The answer is not one of this service; is the URL right?';
  const key = keyOrigin === undefined ? '' : ` The key that was used is ${keyOrigin}.`;
  return new ServiceClientError(`${message} (${number})${key}`);
}

function cutOff(cause: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return new ServiceClientError('The connection ended in the middle of the reply.', { cause });
}

async function readReply(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  try {
    return await readText(response);
  } catch (error) {
    throw cutOff(error, signal);
  }
}

async function readJson(response: IncomingMessage, signal: AbortSignal): Promise<unknown> {
  return parseJson(await readReply(response, signal));
}

/** Undefined, which fits no schema of the contract, when the text is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parse<T>(
  schema: { safeParse(value: unknown): { success: true; data: T } | { success: false } },
  value: unknown,
): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ServiceClientError('The answer is not one of this service; is the URL right?');
}
