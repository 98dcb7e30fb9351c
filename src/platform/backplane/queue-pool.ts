import pg from 'pg';

const connectTimeoutMs = 5_000;
/** A server that takes the query and never answers is away too. */
const queryTimeoutMs = 5_000;

/** States of a server that comes or goes (SQLSTATE): shutting down, crashed, starting up, out of connections. */
const passingStates = new Set(['57P01', '57P02', '57P03', '53300']);

/** Connections for BullMQ's Postgres backend. */
export function openQueuePool(url: string, { maxConnections }: { maxConnections: number }): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
    // The backend's SQL names its tables without a schema. A job lives for seconds and its client waits: losing
    // the last few when the database machine crashes is worth not waiting for its disk at every step.
    options: '-c search_path=bullmq -c synchronous_commit=off',
  });
  // A broken idle connection without a listener would end the process; the next query opens another.
  pool.on('error', () => {});
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
  const patient = (...args: unknown[]) =>
    query(...args).catch((error: unknown) => {
      throw markOutage(error);
    });
  return Object.assign(pool, { query: patient as typeof pool.query });
}

/**
 * BullMQ repeats an operation when it fails with ECONNREFUSED, and takes anything else for an answer: without
 * this mark a worker would ask a starting server again and again without a pause, and forget jobs it finished
 * while the server went away.
 */
function markOutage(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const state = error instanceof pg.DatabaseError ? error.code : undefined;
  const passing = state === undefined || state.startsWith('08') || passingStates.has(state);
  return passing ? Object.assign(error, { code: 'ECONNREFUSED' }) : error;
}
