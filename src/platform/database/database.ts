import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { abortable } from '../abortable.js';
import type { Logger } from '../logger.js';
import { PrismaClient } from './generated/client.js';

/** What a query waits for a connection before it fails: a client is waiting for the answer. */
const connectTimeoutMs = 5_000;

/** One statement with its parameters; `name` lets each connection prepare it once. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface Database {
  /** Queries by model. */
  readonly client: PrismaClient;
  /** Calls a function of the database, where going through a model would cost more than the function itself. */
  query<Row extends object>(statement: Statement): Promise<Row[]>;
  /** Resolves when the database answers; rejects with the reason, or when `signal` aborts. */
  check(signal: AbortSignal): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Connects with the first query, and again with the next one after a connection broke. */
export function openDatabase(url: string, options: { logger: Logger; maxConnections?: number }): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
  });
  // An idle connection that breaks would otherwise end the process; the next query opens another.
  pool.on('error', (error) => options.logger.debug({ err: error }, 'an idle database connection broke'));
  const client = new PrismaClient({ adapter: new PrismaPg(pool) });
  let closing: Promise<void> | undefined;
  return {
    client,
    query: async <Row extends object>({ name, text, values }: Statement) =>
      (await pool.query<Row>({ name, text, values: [...values] })).rows,
    check: async (signal) => void (await abortable(pool.query('SELECT 1'), signal)),
    close: () => {
      closing ??= client.$disconnect().then(() => pool.end());
      return closing;
    },
  };
}
