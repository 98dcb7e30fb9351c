import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Authenticator } from './authenticate.js';
import { pathOf, type RouteTable } from './route-table.js';

/** The operations answer under these paths too. */
const openAliases = new Set(['/chat/completions', '/rerank']);

/**
 * What is decided before a body is read: who asks, wherever a key is needed, and then whether there is anything at
 * that path. Strangers learn nothing about what there is under /v1.
 */
export function addGate(
  app: FastifyInstance,
  { authenticator, routes }: { authenticator: Authenticator; routes: RouteTable },
): void {
  app.addHook('onRequest', async (request, response) => {
    const path = pathOf(request.raw.url ?? '/');
    if (request.is404 && request.method === 'OPTIONS') {
      const allowed = routes.allowed(path);
      if (allowed !== undefined) return response.code(204).header('allow', allowed).send();
    }
    if (needsKey(request, path)) {
      request.caller = await authenticator.authenticate(request.headers.authorization, request.ip);
    }
    if (request.is404) {
      const allowed = routes.allowed(path);
      if (allowed !== undefined) response.header('allow', allowed);
      throw routes.refusal(path);
    }
  });
}

/** By the route that was found, where one was: a path can be written in many ways. */
function needsKey(request: FastifyRequest, path: string): boolean {
  const url = (request.is404 ? path : request.routeOptions.url) ?? '';
  return url === '/v1' || url.startsWith('/v1/') || openAliases.has(url);
}
