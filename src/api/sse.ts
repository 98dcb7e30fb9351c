import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { ServiceError } from '../contract/errors.js';
import { allowSilence, forbidSilence } from './stalled-client.js';

/** The contract's limit of silence on a stream. */
export const keepAliveMs = 15_000;

/** A client that does not read what is left of a failed stream is cut off after this long. */
const lingerMs = 5_000;

const contentType = 'text/event-stream; charset=utf-8';

const eventHeaders = {
  'content-type': contentType,
  // A proxy that compressed the events would hold them back.
  'cache-control': 'no-cache, no-transform',
  // nginx would otherwise gather the events into larger pieces.
  'x-accel-buffering': 'no',
};

/**
 * A response of server-sent events. Headers go out with the first event, so that an error before it can still be an
 * ordinary response; when nothing is sent for a while, a comment is, and the headers with it.
 */
export class EventStream {
  readonly #response: FastifyReply;
  readonly #idle: NodeJS.Timeout;

  constructor(response: FastifyReply, options: { keepAliveMs: number }) {
    this.#response = response;
    this.#idle = setTimeout(() => this.#comment(), options.keepAliveMs);
    // A write that races with the end of the connection is no error: the request hears of the end by itself.
    response.raw.on('error', () => {});
  }

  /** Whether the status line is out, so that an error can only be an event. */
  get opened(): boolean {
    return this.#response.raw.headersSent;
  }

  /**
   * Sends events (see {@link event}) and resolves when there is room for more.
   * @throws The signal's reason when it aborts before there is.
   */
  async write(events: string, signal: AbortSignal): Promise<void> {
    this.#open();
    this.#idle.refresh();
    const { raw } = this.#response;
    if (raw.write(events)) return;
    forbidSilence(raw.socket);
    await once(raw, 'drain', { signal });
    allowSilence(raw.socket);
  }

  /** Sends the last events and ends the response. */
  end(events: string): void {
    clearTimeout(this.#idle);
    this.#open();
    this.#response.raw.end(events);
  }

  /** Ends an opened stream with an error as its last event, and the connection with it. */
  fail(error: ServiceError): void {
    const { raw, request } = this.#response;
    raw.once('finish', () => request.raw.socket.destroySoon?.());
    this.end(event(JSON.stringify(error.toBody())));
    const cut = setTimeout(() => raw.destroy(), lingerMs);
    raw.once('close', () => clearTimeout(cut));
  }

  /** Leaves the response to others, or the connection to its end. */
  abandon(): void {
    clearTimeout(this.#idle);
  }

  #open(): void {
    if (this.opened) return;
    const { raw } = this.#response;
    const headers = { ...this.#response.getHeaders(), ...eventHeaders };
    this.#response.hijack();
    for (const [name, value] of Object.entries(headers)) raw.setHeader(name, value ?? []);
    raw.writeHead(200);
  }

  #comment(): void {
    this.#open();
    tickle(this.#response.raw);
    this.#idle.refresh();
  }
}

/** Sends a comment, which clients ignore, on a response that is an open stream; does nothing on any other. */
export function tickle(raw: ServerResponse): void {
  const isOpenStream = raw.getHeader('content-type') === contentType && !raw.writableEnded;
  // A client that reads slowly has enough to read.
  if (isOpenStream && !raw.writableNeedDrain) raw.write(': keep-alive\n\n');
}

/** One event, from text without line breaks. */
export function event(data: string): string {
  return `data: ${data}\n\n`;
}
