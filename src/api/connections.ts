import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ClientGone } from './reply.js';

/**
 * The open connections, each with the requests on it that have no answer yet. Connections are watched, not requests:
 * a pipelined one has no response on the wire yet, and one whose body was read says nothing when its client goes.
 */
export class Connections {
  readonly #unanswered = new Map<Socket, Set<AbortController>>();

  constructor(app: FastifyInstance) {
    app.server.on('connection', (socket) => this.#requestsOn(socket));
  }

  /** Aborts with {@link ClientGone} when the connection ends before the response was handed to the system. */
  watch(request: FastifyRequest, response: FastifyReply): AbortSignal {
    const controller = new AbortController();
    const unanswered = this.#requestsOn(request.raw.socket);
    unanswered.add(controller);
    response.raw.once('finish', () => unanswered.delete(controller));
    return controller.signal;
  }

  /** Closes the connections on which nothing is asked, those included that have never asked anything. */
  closeIdle(): void {
    for (const [socket, unanswered] of this.#unanswered) {
      if (unanswered.size === 0) socket.destroySoon();
    }
  }

  #requestsOn(socket: Socket): Set<AbortController> {
    const known = this.#unanswered.get(socket);
    if (known !== undefined) return known;
    const unanswered = new Set<AbortController>();
    this.#unanswered.set(socket, unanswered);
    socket.once('close', () => {
      this.#unanswered.delete(socket);
      for (const controller of unanswered) controller.abort(new ClientGone('The client has gone.'));
    });
    return unanswered;
  }
}
