import type { Send } from './exchange.js';
import { runLoad } from './run-load.js';
import { type Summary, summarize } from './summary.js';

export interface MeasureOptions {
  readonly send: Send;
  /** Each number of clients is measured for itself, in this order. */
  readonly clients: readonly number[];
  /** How many requests to make with each number of clients; {@link defaultRequests} when left out, */
  readonly requests?: number;
  /** or for how long to make them. */
  readonly seconds?: number;
  /** Requests that each client makes before it is measured. */
  readonly warmUp: number;
  /** Runs with different numbers share no request, so that no cache of the server's can serve one: the first's. */
  readonly firstRun?: number;
  readonly signal: AbortSignal;
  readonly onMeasured?: (summary: Summary) => void | Promise<void>;
}

/** Four of each client, and more where those would be but a handful. */
export function defaultRequests(clients: number): number {
  return Math.max(8, 4 * clients);
}

/** No run makes so many requests. */
const indexesOfRun = 1_000_000;

/** Ends early, with what was measured until then, when the signal aborts. */
export async function measure(options: MeasureOptions): Promise<Summary[]> {
  const { send, seconds, warmUp, signal } = options;
  const summaries: Summary[] = [];
  for (const [run, clients] of options.clients.entries()) {
    const firstIndex = 2 * ((options.firstRun ?? 0) + run) * indexesOfRun;
    if (warmUp > 0) await runLoad({ send, clients, requests: warmUp * clients, firstIndex, signal });
    if (signal.aborted) break;
    const requests = seconds === undefined ? (options.requests ?? defaultRequests(clients)) : undefined;
    const summary = summarize(
      await runLoad({ send, clients, requests, seconds, firstIndex: firstIndex + indexesOfRun, signal }),
    );
    summaries.push(summary);
    await options.onMeasured?.(summary);
    if (signal.aborted) break;
  }
  return summaries;
}
