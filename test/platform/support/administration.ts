import { afterAll, beforeAll } from 'vitest';
import { catalogueSchema } from '../../../src/models/catalogue.js';
import type { ChangeContext } from '../../../src/platform/change.js';
import { type Database, openDatabase } from '../../../src/platform/database/database.js';
import { createLogger } from '../../../src/platform/logger.js';
import { MemoryBackplane } from '../../support/memory-backplane.js';
import { createTestDatabase } from '../../support/postgres.js';

const source = { from: 'file', path: 'nowhere' };

export const catalogue = catalogueSchema.parse({
  models: [
    { id: 'owner/chat', task: 'chat', sources: [source] },
    { id: 'rerank', task: 'rerank', sources: [source] },
  ],
});

export const logger = createLogger({ level: 'silent', name: 'test' });

/** A database of this file's own, with an operator who changes things in it. */
export class Administration {
  database!: Database;
  readonly backplane = new MemoryBackplane();

  /** What changes are made with, by `cli:test`. */
  get context(): ChangeContext & { database: Database; catalogue: typeof catalogue } {
    return { database: this.database, backplane: this.backplane, actor: 'cli:test', logger, catalogue };
  }

  /** The last of the audit log. */
  async lastAudit() {
    return this.database.client.auditEntry.findFirst({ orderBy: { id: 'desc' } });
  }

  /** An account that nothing else uses. */
  async account(name: string) {
    return this.database.client.account.create({ data: { name } });
  }
}

/** For a suite: there from `beforeAll` on. */
export function useAdministration(): Administration {
  const administration = new Administration();
  let release = async () => {};
  beforeAll(async () => {
    const server = await createTestDatabase();
    administration.database = openDatabase(server.url, { logger });
    release = async () => {
      await administration.database.close();
      await server.drop();
    };
  });
  afterAll(() => release());
  return administration;
}
