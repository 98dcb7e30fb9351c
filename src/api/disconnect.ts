import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ClientGone } from './reply.js';

/**
 * Tells when the client of a request has gone. The connection is watched, not the request: a pipelined one has no
 * response on the wire yet, and one whose body was read says nothing when its connection ends.
 */
export class Disconnects {
  readonly #unanswered = new WeakMap<Socket, Set<AbortController>>();

  /** Aborts with {@link ClientGone} when the connection ends before the response was handed to the system. */
  watch(request: FastifyRequest, response: FastifyReply): AbortSignal {
    const controller = new AbortController();
    const unanswered = this.#of(request.raw.socket);
    unanswered.add(controller);
    response.raw.once('finish', () => unanswered.delete(controller));
    return controller.signal;
  }

  #of(socket: Socket): Set<AbortController> {
    const known = this.#unanswered.get(socket);
    if (known !== undefined) return known;
    const unanswered = new Set<AbortController>();
    this.#unanswered.set(socket, unanswered);
    socket.once('close', () => {
      for (const controller of unanswered) controller.abort(new ClientGone('The client has gone.'));
    });
    return unanswered;
  }
}
