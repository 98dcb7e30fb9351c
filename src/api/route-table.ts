import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../contract/errors.js';

/** The routes that exist, to tell an unknown path from a known one asked with the wrong method. */
export class RouteTable {
  readonly #methods = new Map<string, Set<string>>();

  /** Learns every route that is added to `app` from now on. */
  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method }) => {
      const methods = this.#methods.get(url) ?? new Set(['OPTIONS']);
      for (const name of [method].flat()) methods.add(name);
      this.#methods.set(url, methods);
    });
  }

  /** The value of an Allow header; undefined when there is no such path. */
  allowed(path: string): string | undefined {
    const methods = this.#methods.get(path) ?? this.#methods.get(this.#wildcardOf(path) ?? '');
    return methods && [...methods].sort().join(', ');
  }

  /** Why a request found no route. */
  refusal(path: string): ServiceError {
    return new ServiceError(this.allowed(path) === undefined ? 'routeNotFound' : 'methodNotAllowed');
  }

  #wildcardOf(path: string): string | undefined {
    return [...this.#methods.keys()].find(
      (url) => url.endsWith('/*') && path.startsWith(url.slice(0, -1)) && path.length >= url.length,
    );
  }
}

/** The path of a request target, without its query. */
export function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  return end === -1 ? url : url.slice(0, end);
}
