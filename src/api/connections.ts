import { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ClientGone } from './reply.js';
import { tickle } from './sse.js';
import { allowSilence, forbidSilence } from './stalled-client.js';

/** A client that says it will send no more is asked whether it still reads: soon, and then less and less often. */
const firstProbeMs = 10;
const maxProbeMs = 2_000;

interface Unanswered {
  readonly request: FastifyRequest;
  readonly response: FastifyReply;
  readonly controller: AbortController;
}

/**
 * The open connections, each with the requests on it that have no answer yet. Connections are watched, not requests:
 * a pipelined one has no response on the wire yet, and one whose body was read says nothing when its client goes.
 *
 * A client that closes its side may have gone, or may only have nothing more to send. Nothing but writing to it tells
 * the two apart: one that has gone answers with a reset.
 */
export class Connections {
  /** In the order of the requests: the first is the one whose response is on the wire. */
  readonly #unanswered = new Map<Socket, Set<Unanswered>>();

  constructor(app: FastifyInstance) {
    // Without this Node.js closes a connection as soon as its client has closed its own side.
    Object.assign(app.server, { httpAllowHalfOpen: true });
    app.server.on('connection', (socket) => this.#requestsOn(socket));
  }

  /** Aborts with {@link ClientGone} when the connection ends before the response was handed to the system. */
  watch(request: FastifyRequest, response: FastifyReply): AbortSignal {
    const { socket } = request.raw;
    const entry: Unanswered = { request, response, controller: new AbortController() };
    const unanswered = this.#requestsOn(socket);
    unanswered.add(entry);
    response.raw.once('finish', () => {
      unanswered.delete(entry);
      // Node.js limits the silence before another request, but not before the next response.
      if (unanswered.size > 0) allowSilence(socket);
    });
    // What is left when the response is complete goes out at the pace of the client, or not at all.
    response.raw.once('prefinish', () => forbidSilence(socket));
    return entry.controller.signal;
  }

  /** Closes the connections on which nothing is asked, those included that have never asked anything. */
  closeIdle(): void {
    for (const [socket, unanswered] of this.#unanswered) {
      // An injected request has no connection: what stands for its socket cannot be closed.
      if (unanswered.size === 0 && socket instanceof Socket) socket.destroySoon();
    }
  }

  #requestsOn(socket: Socket): Set<Unanswered> {
    const known = this.#unanswered.get(socket);
    if (known !== undefined) return known;
    const unanswered = new Set<Unanswered>();
    this.#unanswered.set(socket, unanswered);
    socket.once('end', () => probe(socket, unanswered, firstProbeMs));
    socket.once('close', () => {
      this.#unanswered.delete(socket);
      for (const { controller } of unanswered) controller.abort(new ClientGone('The client has gone.'));
    });
    return unanswered;
  }
}

/** Writes what means nothing to the client for as long as it waits; the connection breaks when nobody is there. */
function probe(socket: Socket, unanswered: ReadonlySet<Unanswered>, afterMs: number): void {
  const [first] = unanswered;
  if (first === undefined || socket.destroyed) return;
  const { raw } = first.response;
  // HTTP/1.0 knows no interim response, and its clients do not close one side alone.
  if (first.request.raw.httpVersion === '1.0') {
    socket.destroy();
    return;
  }
  if (!raw.headersSent) raw.writeContinue();
  else tickle(raw);
  setTimeout(() => probe(socket, unanswered, Math.min(2 * afterMs, maxProbeMs)), afterMs).unref();
}
