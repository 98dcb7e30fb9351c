import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { Authenticator, type AuthenticatorOptions } from '../../src/api/authenticate.js';
import { FailedAttempts } from '../../src/api/failed-attempts.js';
import { keysChannel } from '../../src/contract/names.js';
import { hashKey } from '../../src/platform/keys.js';
import { MemoryBackplane } from '../support/memory-backplane.js';
import { accountId, authorization, FakeDatabase, keyId, secret } from './support/test-app.js';

const address = '192.0.2.1';

function authenticator(database = new FakeDatabase(), options: Partial<AuthenticatorOptions> = {}) {
  const lines: string[] = [];
  const logger = pino({ level: 'trace' }, { write: (line) => void lines.push(line) });
  return { database, lines, subject: new Authenticator({ keys: database.keys, logger, ...options }) };
}

describe('a key that works', () => {
  it('tells whose it is', async () => {
    const { subject } = authenticator();
    expect(await subject.authenticate(authorization, address)).toEqual({ accountId, keyId, verified: false });
  });

  it.each([`bearer ${secret}`, `BEARER   ${secret} `])('is read from %j', async (header) => {
    const { subject } = authenticator();
    expect(await subject.authenticate(header, address)).toEqual({ accountId, keyId, verified: false });
  });

  it('costs one query for all requests of a moment', async () => {
    const { subject, database } = authenticator();
    await Promise.all(Array.from({ length: 20 }, () => subject.authenticate(authorization, address)));
    await subject.authenticate(authorization, address);
    expect(database.finds).toBe(1);
  });

  it('is looked up again after that moment, so that it can be revoked', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), { cacheMs: 0 });
    await subject.authenticate(authorization, address);
    database.addKey(secret, { revokedAt: new Date() });
    await expect(subject.authenticate(authorization, address)).rejects.toMatchObject({
      kind: 'unauthorized',
    });
  });

  it('is marked as used once, not with every request', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), { cacheMs: 0 });
    await subject.authenticate(authorization, address);
    await subject.authenticate(authorization, address);
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
    await expect(subject.authenticate(header, address)).rejects.toMatchObject({ kind: 'unauthorized' });
  });

  it.each([
    ['revoked', { revokedAt: new Date() }],
    ['expired', { expiresAt: new Date(Date.now() - 1) }],
  ])('is unauthorized when the key is %s', async (_state, record) => {
    const { subject, database } = authenticator();
    database.addKey(secret, record);
    await expect(subject.authenticate(authorization, address)).rejects.toMatchObject({
      kind: 'unauthorized',
    });
  });

  it('is forbidden when the account is disabled', async () => {
    const { subject, database } = authenticator();
    database.addKey(secret, { account: { disabled: true, verified: false } });
    await expect(subject.authenticate(authorization, address)).rejects.toMatchObject({
      kind: 'accountDisabled',
    });
  });
});

describe('the cache of keys', () => {
  it('stays within its bound', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), { maxCachedKeys: 2 });
    for (const key of ['a', 'b', 'c']) await subject.authenticate(`Bearer ${key}`, address).catch(() => {});
    expect(database.finds).toBe(3);
    await subject.authenticate('Bearer c', address).catch(() => {});
    expect(database.finds).toBe(3);
    await subject.authenticate('Bearer a', address).catch(() => {});
    expect(database.finds).toBe(4);
  });

  it('does not keep failures of the database', async () => {
    const { subject, database } = authenticator();
    database.away = true;
    await expect(subject.authenticate(authorization, address)).rejects.toMatchObject({ kind: 'overloaded' });
    database.away = false;
    expect(await subject.authenticate(authorization, address)).toEqual({ accountId, keyId, verified: false });
  });
});

it('never writes a key to the log', async () => {
  const { subject, database, lines } = authenticator();
  database.keys.touch = async () => {
    throw new Error('the database is away');
  };
  await subject.authenticate(authorization, address);
  await subject.authenticate(`Bearer ${secret}x`, address).catch(() => {});
  expect(lines).not.toEqual([]);
  expect(lines.join('')).not.toContain(secret.slice(3));
});

describe('a change of keys that is told on the channel', () => {
  it('ends what was believed at once', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), { cacheMs: 60_000 });
    const { channel } = new MemoryBackplane();
    await subject.listen(channel);
    await subject.authenticate(authorization, address);
    database.addKey(secret, { revokedAt: new Date() });
    expect(await subject.authenticate(authorization, address)).toEqual({ accountId, keyId, verified: false });
    await channel.publish(keysChannel, 'changed');
    await expect(subject.authenticate(authorization, address)).rejects.toMatchObject({
      kind: 'unauthorized',
    });
    await subject.close();
  });

  it('ends what an earlier question answers only later', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), { cacheMs: 60_000 });
    const find = database.keys.find;
    let answer = () => {};
    database.keys.find = async (sha256) => {
      const before = await find(sha256);
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return before;
    };
    const early = subject.authenticate(authorization, address);
    await expect.poll(() => database.finds).toBe(1);
    database.keys.find = find;
    database.addKey(secret, { revokedAt: new Date() });
    subject.forget();
    answer();
    await early;
    await expect(subject.authenticate(authorization, address)).rejects.toMatchObject({
      kind: 'unauthorized',
    });
  });
});

it('a key that ends by itself is refused from that moment', async () => {
  const { subject, database } = authenticator(new FakeDatabase(), { cacheMs: 60_000 });
  const expiresAt = new Date(Date.now() + 50);
  database.addKey(secret, { expiresAt });
  await subject.authenticate(authorization, address);
  const tried = () =>
    subject.authenticate(authorization, address).then(
      () => 'works',
      ({ kind }) => kind,
    );
  await expect.poll(tried, { interval: 5 }).toBe('unauthorized');
  expect(Date.now()).toBeGreaterThanOrEqual(expiresAt.getTime());
  expect(database.finds).toBe(1);
});

describe('an address that sends wrong keys', () => {
  it('soon has to wait, so that 10,000 keys take hours and next to no queries', async () => {
    let now = 0;
    const failures = new FailedAttempts(() => now);
    const { subject, database, lines } = authenticator(new FakeDatabase(), { failures });
    const outcomes = new Map<string, number>();
    for (let i = 0; i < 10_000; i++) {
      now += 1;
      const { kind, retryAfterSeconds } = await subject
        .authenticate(`Bearer sk-${i}`, address)
        .catch((e) => e);
      outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
      if (kind === 'rpmLimit') expect(retryAfterSeconds).toBe(1);
    }
    expect(outcomes.get('unauthorized')).toBeLessThan(45);
    expect(outcomes.get('rpmLimit')).toBeGreaterThan(9_950);
    expect(database.finds).toBe(outcomes.get('unauthorized'));
    expect(lines.join('')).toContain(address);
    expect(lines.join('')).not.toContain('sk-');
    expect(lines.length).toBeLessThan(2 * outcomes.get('unauthorized')!);
  });

  it('learns nothing from how long an answer takes: each costs one hash and one look-up by it', async () => {
    const { subject, database } = authenticator(new FakeDatabase(), {
      failures: new FailedAttempts(() => 0),
    });
    const lookedUp: string[] = [];
    const find = database.keys.find;
    database.keys.find = async (sha256) => {
      lookedUp.push(sha256);
      return find(sha256);
    };
    const rightParts = [0, 3, 20, secret.length - 1];
    const guesses = rightParts.map((right) => secret.slice(0, right).padEnd(secret.length, '_'));
    for (const guess of guesses) {
      await expect(subject.authenticate(`Bearer ${guess}`, address)).rejects.toMatchObject({
        kind: 'unauthorized',
      });
    }
    // Of a guess that is nearly right nothing that is compared is: not even the first digits of its hash.
    expect(lookedUp).toEqual(guesses.map(hashKey));
    for (const sha256 of lookedUp) expect(sha256.slice(0, 4)).not.toBe(hashKey(secret).slice(0, 4));
  });

  it('does not keep others out, nor keys that are known to work', async () => {
    const { subject } = authenticator();
    await subject.authenticate(authorization, address);
    for (let i = 0; i < 100; i++) await subject.authenticate(`Bearer sk-${i}`, address).catch(() => {});
    expect(await subject.authenticate(authorization, address)).toEqual({ accountId, keyId, verified: false });
    await expect(subject.authenticate('Bearer sk-x', '192.0.2.2')).rejects.toMatchObject({
      kind: 'unauthorized',
    });
  });

  it('is its whole network where it is IPv6', () => {
    const failures = new FailedAttempts(() => 0);
    for (let i = 0; i < 40; i++) failures.add(`2001:db8:0:1::${i.toString(16)}`);
    expect(failures.waitSeconds('2001:db8:0:1:ffff:0:0:1')).toBeGreaterThan(0);
    expect(failures.waitSeconds('2001:db8:0:2::1')).toBe(0);
  });
});
