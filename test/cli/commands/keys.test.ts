import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCreateKey, runListKeys, runRevokeKey } from '../../../src/cli/commands/keys.js';
import { type Database, openDatabase } from '../../../src/platform/database/database.js';
import { createLogger } from '../../../src/platform/logger.js';
import { MemoryBackplane } from '../../support/memory-backplane.js';
import { createTestDatabase } from '../../support/postgres.js';
import { TestTerminal } from '../client/local-service.js';

let database: Database;
let release: () => Promise<void>;

beforeAll(async () => {
  const server = await createTestDatabase();
  database = openDatabase(server.url, { logger: createLogger({ level: 'silent', name: 'test' }) });
  release = async () => {
    await database.close();
    await server.drop();
  };
});

afterAll(() => release());

const context = ({ json }: { json: boolean }) => ({
  database,
  backplane: new MemoryBackplane(),
  actor: 'cli:test',
  logger: createLogger({ level: 'silent', name: 'test' }),
  json,
  terminal: new TestTerminal(),
});

async function create(
  name: string,
  expiresInMs?: number,
): Promise<{ id: string; secret: string; prefix: string }> {
  const made = context({ json: true });
  await runCreateKey({ name, account: 'team', expiresInMs }, made);
  return JSON.parse(made.terminal.output);
}

async function stateOf(id: string): Promise<string | undefined> {
  const listed = context({ json: false });
  await runListKeys(listed);
  const row = listed.terminal.output.split('\n').find((line) => line.startsWith(id));
  return row?.split(/ {2,}/)[4];
}

describe('headrace keys', () => {
  it('create prints the secret alone on standard output', async () => {
    const { terminal, ...made } = context({ json: false });

    await runCreateKey({ name: 'laptop', account: 'team', expiresInMs: undefined }, { ...made, terminal });

    expect(terminal.output).toMatch(/^sk-[0-9A-Za-z]{40,}\n$/);
    expect(terminal.errors).toContain('account "team"');
  });

  it('list shows every key and no secret', async () => {
    const { id, secret, prefix } = await create('listed');
    const listed = context({ json: false });

    await runListKeys(listed);

    const { output } = listed.terminal;
    expect(output.split('\n')[0]).toMatch(/^id +prefix +account +name +state +created +last used$/);
    expect(output).toMatch(new RegExp(`${id} +${prefix} +team +listed +active `));
    expect(output).not.toContain(secret);
  });

  it('list tells when a key ends', async () => {
    const day = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);

    expect(await stateOf((await create('for a day', 86_400_000)).id)).toBe(`active until ${day}`);
    expect(await stateOf((await create('ended', -86_400_000)).id)).toMatch(/^expired \d{4}-\d\d-\d\d$/);
  });

  it.each(['id', 'prefix'] as const)('revoke ends a key by its %s', async (by) => {
    const key = await create(`revoked by ${by}`);
    const { terminal, ...revoking } = context({ json: false });

    await runRevokeKey(key[by], { ...revoking, terminal });

    expect(terminal.output).toContain(key.prefix);
    expect(await stateOf(key.id)).toMatch(/^revoked \d{4}-\d\d-\d\d$/);
  });

  it('revoke says that there is no such key', async () => {
    await expect(runRevokeKey('sk-nothing', context({ json: false }))).rejects.toThrow(
      '"sk-nothing" is not the id or the prefix of one key',
    );
  });
});
