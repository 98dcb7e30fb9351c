import { expect, test } from 'vitest';
import { openDatabase } from '../../../src/platform/database/database.js';
import { createLogger } from '../../../src/platform/logger.js';
import { freePort } from '../../support/free-port.js';
import { createTestDatabase } from '../../support/postgres.js';

const logger = createLogger({ level: 'silent', name: 'test' });

test('queries work again after every connection was cut', async () => {
  const { url, drop } = await createTestDatabase();
  const database = openDatabase(url, { logger });
  try {
    await database.client.account.create({ data: { name: 'team' } });
    const cut = database.client.$queryRaw`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database()`;
    await expect(cut).rejects.toThrow();
    expect(await database.client.account.count()).toBe(1);
    await database.check(AbortSignal.timeout(5_000));
  } finally {
    await database.close();
    await drop();
  }
});

test('check rejects when nothing answers, and the client with it', async () => {
  const url = `postgresql://nobody@127.0.0.1:${await freePort()}/none`;
  const database = openDatabase(url, { logger });
  try {
    await expect(database.check(AbortSignal.timeout(5_000))).rejects.toThrow('ECONNREFUSED');
    await expect(database.client.account.count()).rejects.toThrow();
  } finally {
    await database.close();
  }
});

test('check rejects with the reason of its signal', async () => {
  const { url, drop } = await createTestDatabase();
  const database = openDatabase(url, { logger });
  try {
    await expect(database.check(AbortSignal.abort(new Error('asked too late')))).rejects.toThrow(
      'asked too late',
    );
  } finally {
    await database.close();
    await drop();
  }
});
