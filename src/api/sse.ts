import { once } from 'node:events';
import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { ServiceError } from '../contract/errors.js';

/** The contract's limit of silence on a stream. */
export const keepAliveMs = 15_000;

/** A client that does not read what is left of a failed stream is cut off after this long. */
const lingerMs = 5_000;

const eventHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
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
    if (!this.#response.raw.write(events)) await once(this.#response.raw, 'drain', { signal });
  }

  /** Sends the last events and ends the response. */
  end(events: string): void {
    clearTimeout(this.#idle);
    this.#open();
    this.#response.raw.end(events);
  }

  /** Ends an opened stream with an error as its last event. */
  fail(error: ServiceError): void {
    const { raw } = this.#response;
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
    this.#response.hijack();
    const headers = this.#response.getHeaders() as OutgoingHttpHeaders;
    this.#response.raw.writeHead(200, { ...headers, ...eventHeaders });
  }

  #comment(): void {
    this.#open();
    // A client that reads slowly has enough to read.
    if (!this.#response.raw.writableNeedDrain) this.#response.raw.write(': keep-alive\n\n');
    this.#idle.refresh();
  }
}

/** One event, from text without line breaks. */
export function event(data: string): string {
  return `data: ${data}\n\n`;
}
