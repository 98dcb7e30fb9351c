import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { Authenticator } from '../../src/api/authenticate.js';
import { accountId, authorization, FakeDatabase, keyId, secret } from './support/test-app.js';

function authenticator(
  database = new FakeDatabase(),
  options: { cacheMs?: number; maxCachedKeys?: number } = {},
) {
  const lines: string[] = [];
  const logger = pino({ level: 'trace' }, { write: (line) => void lines.push(line) });
  return { database, lines, subject: new Authenticator({ keys: database.keys, logger, ...options }) };
}

describe('a key that works', () => {
  it('tells whose it is', async () => {
    const { subject } = authenticator();
    expect(await subject.authenticate(authorization)).toEqual({ accountId, keyId });
  });

  it.each([`bearer ${secret}`, `BEARER   ${secret} `])('is read from %j', async (header) => {
    const { subject } = authenticator();
    expect(await subject.authenticate(header)).toEqual({ accountId, keyId });
  });

  it('costs one query for all requests of a moment', async () => {
    const { subject, database } = authenticator();
    await Promise.all(Array.from({ length: 20 }, () => subject.authenticate(authorization)));
    await subject.authenticate(authorization);
    expect(database.finds).toBe(1);
  });

  it('is looked up again after that moment, so that it can be revoked', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), { cacheMs: 0 });
    await subject.authenticate(authorization);
    database.addKey(secret, { revokedAt: new Date() });
    await expect(subject.authenticate(authorization)).rejects.toMatchObject({ kind: 'unauthorized' });
  });

  it('is marked as used once, not with every request', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), { cacheMs: 0 });
    await subject.authenticate(authorization);
    await subject.authenticate(authorization);
    expect(database.touched).toEqual([keyId]);
  });
});

describe('a request without a key that works', () => {
  it.each([
    undefined,
    '',
    secret,
    'Bearer',
    'Bearer ',
    `Basic ${secret}`,
    `Bearer ${secret} ${secret}`,
    `Bearer ${secret}x`,
    `Bearer ${'x'.repeat(2_000)}`,
  ])('is unauthorized: %j', async (header) => {
    const { subject } = authenticator();
    await expect(subject.authenticate(header)).rejects.toMatchObject({ kind: 'unauthorized' });
  });

  it.each([
    ['revoked', { revokedAt: new Date() }],
    ['expired', { expiresAt: new Date(Date.now() - 1) }],
  ])('is unauthorized when the key is %s', async (_state, record) => {
    const { subject, database } = authenticator();
    database.addKey(secret, record);
    await expect(subject.authenticate(authorization)).rejects.toMatchObject({ kind: 'unauthorized' });
  });

  it('is forbidden when the account is disabled', async () => {
    const { subject, database } = authenticator();
    database.addKey(secret, { account: { disabled: true } });
    await expect(subject.authenticate(authorization)).rejects.toMatchObject({ kind: 'accountDisabled' });
  });
});

describe('the cache of keys', () => {
  it('stays within its bound', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), { maxCachedKeys: 2 });
    for (const key of ['a', 'b', 'c']) await subject.authenticate(`Bearer ${key}`).catch(() => {});
    expect(database.finds).toBe(3);
    await subject.authenticate('Bearer c').catch(() => {});
    expect(database.finds).toBe(3);
    await subject.authenticate('Bearer a').catch(() => {});
    expect(database.finds).toBe(4);
  });

  it('does not keep failures of the database', async () => {
    const { subject, database } = authenticator();
    database.away = true;
    await expect(subject.authenticate(authorization)).rejects.toMatchObject({ kind: 'overloaded' });
    database.away = false;
    expect(await subject.authenticate(authorization)).toEqual({ accountId, keyId });
  });
});

it('never writes a key to the log', async () => {
  const { subject, database, lines } = authenticator();
  database.keys.touch = async () => {
    throw new Error('the database is away');
  };
  await subject.authenticate(authorization);
  await subject.authenticate(`Bearer ${secret}x`).catch(() => {});
  expect(lines).not.toEqual([]);
  expect(lines.join('')).not.toContain(secret.slice(3));
});
