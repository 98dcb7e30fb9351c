import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { toApiDatabase } from '../../../src/api/api-database.js';
import { buildApp } from '../../../src/api/app.js';
import { type Database, openDatabase } from '../../../src/platform/database/database.js';
import { MemoryBackplane } from '../../support/memory-backplane.js';
import { createTestDatabase } from '../../support/postgres.js';
import { catalogue } from '../support/test-app.js';

export const adminToken = 'a-token-for-administration';

/** A service on a real database, and an operator who asks it things. */
export class AdminService {
  readonly log: string[] = [];
  readonly app: FastifyInstance;
  readonly backplane: MemoryBackplane;
  readonly database: Database;
  readonly close: () => Promise<void>;

  static async start(token: string | undefined = adminToken): Promise<AdminService> {
    const server = await createTestDatabase();
    const log: string[] = [];
    const logger = pino({ level: 'trace' }, { write: (line) => void log.push(line) });
    const database = openDatabase(server.url, { logger });
    const backplane = new MemoryBackplane();
    const app = await buildApp({
      apiId: 'api-under-test',
      database: toApiDatabase(database),
      ...(token !== '' && { admin: { token, database } }),
      backplane,
      catalogue,
      version: '1.2.3',
      presence: { workersOf: () => [] },
      logger,
      config: { bodyLimitBytes: 1 << 20, requestTimeoutMs: 60_000, maxQueueDepth: 100 },
      timing: { drainMs: 0 },
    });
    return new AdminService({
      app,
      backplane,
      database,
      log,
      close: async () => {
        await app.close();
        await database.close();
        await server.drop();
      },
    });
  }

  private constructor(parts: Pick<AdminService, 'app' | 'backplane' | 'database' | 'log' | 'close'>) {
    this.app = parts.app;
    this.backplane = parts.backplane;
    this.database = parts.database;
    this.log = parts.log;
    this.close = parts.close;
  }

  /** Asks the administration; `path` begins behind its prefix. */
  async ask(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: Record<string, unknown>) {
    const response = await this.app.inject({
      method,
      url: `/admin/v1${path}`,
      headers: { authorization: `Bearer ${adminToken}` },
      ...(body && { payload: body }),
    });
    return { status: response.statusCode, body: response.json() };
  }

  /** Asks as a user with a key. */
  async get(url: string, secret: string) {
    return this.app.inject({ url, headers: { authorization: `Bearer ${secret}` } });
  }

  /** An account and a key for it. */
  async user(name: string): Promise<{ id: string; secret: string; keyId: string }> {
    const account = await this.ask('POST', '/accounts', { name });
    const key = await this.ask('POST', '/keys', { account: name });
    return { id: account.body.id, secret: key.body.secret, keyId: key.body.id };
  }
}
