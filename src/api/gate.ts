import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type AdminGate, adminPrefix } from './admin/admin-routes.js';
import type { Authenticator } from './authenticate.js';
import { clientAddress } from './client-address.js';
import { pathOf, type RouteTable } from './route-table.js';

/** The operations answer under these paths too; the last is where Cohere's clients ask. */
const openAliases = new Set(['/chat/completions', '/rerank', '/v2/rerank']);

/**
 * What is decided before a body is read: who asks, wherever a key is needed, and then whether there is anything at
 * that path. Strangers learn nothing about what there is under /v1.
 */
export function addGate(
  app: FastifyInstance,
  options: { authenticator: Authenticator; routes: RouteTable; admin: AdminGate | undefined },
): void {
  const { authenticator, routes, admin } = options;
  app.addHook('onRequest', async (request, response) => {
    const path = pathOf(request.raw.url ?? '/');
    if (request.is404 && request.method === 'OPTIONS') {
      const allowed = routes.allowed(path);
      if (allowed !== undefined) return response.code(204).header('allow', allowed).send();
    }
    if (admin !== undefined && isUnder(adminPrefix, request, path)) {
      admin.admit(request.headers.authorization, clientAddress(request));
    }
    if (needsKey(request, path)) {
      request.caller = await authenticator.authenticate(
        request.headers.authorization,
        clientAddress(request),
      );
    }
    if (request.is404) {
      const allowed = routes.allowed(path);
      if (allowed !== undefined) response.header('allow', allowed);
      throw routes.refusal(path);
    }
  });
}

function needsKey(request: FastifyRequest, path: string): boolean {
  return isUnder('/v1', request, path) || openAliases.has(routed(request, path));
}

function isUnder(prefix: string, request: FastifyRequest, path: string): boolean {
  const url = routed(request, path);
  return url === prefix || url.startsWith(`${prefix}/`);
}

/** By the route that was found, where one was: a path can be written in many ways. */
function routed(request: FastifyRequest, path: string): string {
  return (request.is404 ? path : request.routeOptions.url) ?? '';
}
