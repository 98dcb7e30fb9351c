import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from './authenticate.js';
import type { Connections } from './connections.js';
import type { ApiMetrics } from './metrics.js';
import { requestIdHeader } from './request-id.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who sends the request; set before the body of an authenticated route is read. */
    caller: Caller;
    /** Aborts with ClientGone when the connection ends before the answer is out. */
    disconnected: AbortSignal;
    /** The id of the model that answers, once the request has named one that exists; else empty. */
    servedModel: string;
  }
  interface FastifyContextConfig {
    /** What requests of this route are counted as. */
    operation?: 'chat' | 'rerank';
  }
}

/** The status of a request whose client had gone, as nginx has it. */
export const clientGoneStatus = 499;

/** Follows every request from its arrival to its end: its id, its connection, one count and one log line. */
export function followRequests(
  app: FastifyInstance,
  { connections, metrics }: { connections: Connections; metrics: ApiMetrics },
): void {
  const finish = (request: FastifyRequest, { status, ms }: { status: number; ms: number }) => {
    const { operation = 'other' } = request.routeOptions.config;
    const { method, servedModel: model } = request;
    metrics.countResponse({ operation, model, status });
    // Probes and scrapes come all the time, and strangers as often as they like.
    const level = operation === 'other' || request.caller === undefined ? 'debug' : 'info';
    // The route's own pattern: a path may hold anything.
    request.log[level]({ method, route: request.routeOptions.url, status, ms: Math.round(ms) }, 'response');
  };

  app.decorateRequest('caller');
  app.decorateRequest('disconnected');
  app.decorateRequest('servedModel', '');
  app.addHook('onRequest', async (request: FastifyRequest, response: FastifyReply) => {
    response.header(requestIdHeader, request.id);
    request.disconnected = connections.watch(request, response);
    const gone = () => {
      const { headersSent, statusCode } = response.raw;
      // An error goes out in one piece: a client that leaves after it has been answered.
      const status = headersSent && statusCode >= 400 ? statusCode : clientGoneStatus;
      finish(request, { status, ms: response.elapsedTime });
    };
    request.disconnected.addEventListener('abort', gone, { once: true });
  });
  app.addHook('onResponse', async (request, response) => {
    if (request.disconnected.aborted) return;
    finish(request, { status: response.raw.statusCode, ms: response.elapsedTime });
  });
}
