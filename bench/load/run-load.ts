import { setMaxListeners } from 'node:events';
import type { Exchange, Send } from './exchange.js';

export interface LoadOptions {
  readonly send: Send;
  readonly clients: number;
  /** Requests are made one after the other by each client until so many were begun, */
  readonly requests?: number;
  /** or for so long. What is under way then is still waited for, and counted with the time it takes. */
  readonly seconds?: number;
  /** Index of the first request. */
  readonly firstIndex: number;
  /** Ends the run at once with what is there. */
  readonly signal: AbortSignal;
}

export interface Load {
  readonly clients: number;
  readonly elapsedMs: number;
  readonly exchanges: readonly Exchange[];
  /** How often each thing went wrong. */
  readonly failures: ReadonlyMap<string, number>;
  /** Processor time of this process over elapsed time: 1 is a whole core. */
  readonly clientCpu: number;
}

/** Keeps `clients` requests under way, each client sending its next when its last was answered. */
export async function runLoad(options: LoadOptions): Promise<Load> {
  const { send, clients, requests, seconds, firstIndex, signal } = options;
  // Each client listens to it, which Node.js would take for a leak.
  setMaxListeners(0, signal);
  const exchanges: Exchange[] = [];
  const failures = new Map<string, number>();
  const cpuBefore = process.cpuUsage();
  const begun = performance.now();
  const until = seconds === undefined ? Number.POSITIVE_INFINITY : begun + seconds * 1000;
  let next = 0;
  const runClient = async () => {
    while (next < (requests ?? Number.POSITIVE_INFINITY) && performance.now() < until && !signal.aborted) {
      try {
        exchanges.push(await send(firstIndex + next++, signal));
      } catch (error) {
        if (signal.aborted) return;
        const message = describeFailure(error);
        failures.set(message, (failures.get(message) ?? 0) + 1);
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, runClient));
  const elapsedMs = performance.now() - begun;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { clients, elapsedMs, exchanges, failures, clientCpu: (user + system) / 1000 / elapsedMs };
}

/** Node.js gives errors of a host with several addresses no message of their own. */
export function describeFailure(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  return message || code || String(error);
}
