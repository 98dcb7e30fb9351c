import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

export interface TestDatabase {
  readonly url: string;
  /** Ends every session on the database and removes it. */
  drop(): Promise<void>;
}

/** A database of its own for a test or suite, with every migration applied and nothing in it. */
export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const { url, template } = inject('postgres');
  const name = `headrace_test_${randomBytes(8).toString('hex')}`;
  const execute = async (sql: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  };
  await execute(`CREATE DATABASE ${name} TEMPLATE ${options.empty ? 'template0' : template}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return { url: own.href, drop: () => execute(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}
