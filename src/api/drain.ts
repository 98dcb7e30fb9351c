import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../contract/errors.js';
import type { Connections } from './connections.js';
import type { LimitGate } from './limit-gate.js';
import type { Replies } from './replies.js';
import type { UsageLedger } from './usage-ledger.js';

/** How long workers may take to say what the last requests cost, and the database to take it. */
const settleMs = 2_000;

/** A client that has not read its error by then is cut off. */
const lastWordMs = 1_000;

/** How often connections are closed that have become idle. */
const sweepMs = 50;

/**
 * Closing the app refuses new requests, lets those that run end, fails with 503 what has not ended after `drainMs`,
 * and then writes the usage that is left.
 */
export function drainOnClose(
  app: FastifyInstance,
  options: {
    connections: Connections;
    replies: Replies;
    ledger: UsageLedger;
    limits: LimitGate;
    drainMs?: number;
  },
): void {
  const { connections, replies, ledger, limits, drainMs = 30_000 } = options;
  const timers: NodeJS.Timeout[] = [];
  let stopping: ServiceError | undefined;

  app.addHook('onRequest', async () => {
    if (stopping !== undefined) throw stopping;
  });
  app.addHook('preClose', async () => {
    const refusal = new ServiceError('overloaded', 'The service is stopping. Please try again.');
    stopping = refusal;
    timers.push(
      setInterval(() => connections.closeIdle(), sweepMs),
      setTimeout(() => replies.dropAll(refusal), drainMs),
      setTimeout(() => app.server.closeAllConnections(), drainMs + lastWordMs),
    );
  });
  app.addHook('onClose', async () => {
    for (const timer of timers) clearTimeout(timer);
    await replies.close({ graceMs: settleMs });
    await Promise.all([ledger.close({ graceMs: settleMs }), limits.close({ graceMs: settleMs })]);
  });
}
