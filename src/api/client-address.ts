import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/**
 * Where a request comes from: the address that the trusted proxies in front of this process name, or that of the
 * connection where there are none, or where what they name is no address.
 */
export function clientAddress({ ip, socket }: Pick<FastifyRequest, 'ip' | 'socket'>): string {
  // A client that writes the header itself may write anything.
  return isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip;
}
