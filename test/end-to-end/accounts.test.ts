import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createLogger } from '../../src/platform/logger.js';
import { type BackplaneKit, canStopServer, describeBackplanes } from '../support/backplanes.js';
import { chatModel, events, TestService, until } from './test-service.js';

const adminToken = 'a-token-for-administration';
/** How soon every process is to know of a change. */
const knownWithinMs = 1_000;

describeBackplanes('accounts in several API processes', (kit: BackplaneKit) => {
  let service: TestService;
  let database: Database;
  beforeAll(async () => {
    service = await TestService.start(kit.settings, {
      apis: 2,
      models: [chatModel],
      environment: { HEADRACE_ADMIN_TOKEN: adminToken },
    });
    const logger = createLogger({ level: 'silent', name: 'test' });
    database = openDatabase(kit.settings.databaseUrl, { logger });
  });
  afterAll(async () => {
    await database.close();
    await service.close();
  });

  const administer = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${service.url}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${adminToken}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { id: string; secret: string };
    expect(response.status, JSON.stringify(answer)).toBe(200);
    return answer;
  };
  const newUser = async () => {
    const { id } = await administer('POST', '/accounts', { name: randomUUID() });
    const key = await administer('POST', '/keys', { account: id });
    return { accountId: id, keyId: key.id, secret: key.secret };
  };
  const ask = (api: number, secret: string, body: object = {}, headers: Record<string, string> = {}) =>
    fetch(`${service.apis[api]!.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({
        model: chatModel,
        messages: [{ role: 'user', content: 'hello there' }],
        max_tokens: 1,
        ...body,
      }),
    });
  const codeOf = async (api: number, secret: string) => {
    const body = await (await ask(api, secret)).json();
    return (body as { code?: number }).code;
  };
  const usageOf = async (accountId: string) => {
    const rows = await database.client.usageRecord.findMany({ where: { accountId } });
    const tokens = rows.reduce((sum, row) => sum + row.promptTokens + row.completionTokens, 0);
    return { rows, tokens };
  };

  /** Every process answers so, at the latest to a request that is sent a second after `change`. */
  const known = async (change: () => Promise<unknown>, secret: string, code: number | undefined) => {
    await change();
    const changedAt = performance.now();
    for (const api of service.apis.keys()) {
      for (;;) {
        const sentAt = performance.now();
        if ((await codeOf(api, secret)) === code) break;
        expect(sentAt - changedAt).toBeLessThan(knownWithinMs);
      }
    }
  };

  it('refuse a key within a second once it was revoked through one of them', async () => {
    const { secret, keyId } = await newUser();
    for (const api of service.apis.keys()) expect(await codeOf(api, secret)).toBeUndefined();
    await known(() => administer('DELETE', `/keys/${keyId}`), secret, 20001);
  });

  it('refuse an account within a second once it was disabled through one of them', async () => {
    const { secret, accountId } = await newUser();
    for (const api of service.apis.keys()) expect(await codeOf(api, secret)).toBeUndefined();
    await known(() => administer('PATCH', `/accounts/${accountId}`, { disabled: true }), secret, 30002);
    await known(() => administer('PATCH', `/accounts/${accountId}`, { disabled: false }), secret, undefined);
  });

  it('follow within a second what is decided about a model through one of them', async () => {
    const { secret, accountId } = await newUser();
    const decide = (change: object) => () => administer('PATCH', `/models/${chatModel}`, change);
    await known(decide({ state: 'offline' }), secret, 20012);
    await known(decide({ state: 'online', access: 'listed' }), secret, 30003);
    await known(decide({ accounts: [accountId] }), secret, undefined);
    await known(decide({ access: 'verified' }), secret, 30005);
    await known(decide({ access: 'open' }), secret, undefined);
    await known(decide({ state: 'deprecated', sunset: '2099-06-01T12:00:00Z' }), secret, undefined);
    for (const api of service.apis.keys()) {
      await until(async () => (await ask(api, secret)).headers.get('deprecation') !== null);
      const { headers } = await ask(api, secret);
      expect(headers.get('deprecation')).toMatch(/^@\d{10}$/);
      expect(headers.get('sunset')).toBe('Mon, 01 Jun 2099 12:00:00 GMT');
    }
    await known(decide({ state: 'online' }), secret, undefined);
  });

  it('give the same answer under an Idempotency-Key, whichever is asked, and charge it once', async () => {
    const { secret, accountId } = await newUser();
    const headers = { 'idempotency-key': randomUUID() };
    const bodies = await Promise.all(
      Array.from({ length: 6 }, async (_, i) => (await ask(i % 2, secret, {}, headers)).text()),
    );
    expect(new Set(bodies).size).toBe(1);
    await until(async () => (await usageOf(accountId)).rows.length > 0);
    expect((await usageOf(accountId)).rows).toMatchObject([{ id: JSON.parse(bodies[0]!).id, status: 200 }]);
    const different = await ask(1, secret, { max_tokens: 2 }, headers);
    expect(different.status).toBe(409);
    expect(await different.json()).toMatchObject({ code: 20409 });
  });

  // Of a day, so that the test does not run through the end of a minute.
  it('count on where they were after a restart, a crash and a Redis that lost everything', async () => {
    const { secret, accountId } = await newUser();
    await administer('PATCH', '/limits', { account: accountId, rpd: 3 });
    const restarted = async (end: 'stop' | 'kill') => {
      await service.apis[0]!.process[end]();
      service.restartApi(0);
      await service.ready();
    };
    expect(await codeOf(0, secret)).toBeUndefined();
    await restarted('stop');
    expect(await codeOf(0, secret)).toBeUndefined();
    await restarted('kill');
    if (kit.settings.redisUrl !== undefined && canStopServer('redis')) {
      const redis = new Redis(kit.settings.redisUrl);
      await redis.flushall();
      await redis.quit();
    }
    expect(await codeOf(0, secret)).toBeUndefined();
    for (const api of service.apis.keys()) expect(await codeOf(api, secret)).toBe(50608);
  }, 90_000);

  it('lose nothing and count nothing twice when one is killed in the middle of a reply', async () => {
    const { secret, accountId } = await newUser();
    await administer('PATCH', '/limits', { account: accountId, tpd: 100_000 });
    const reply = await ask(0, secret, { max_tokens: 480, stream: true });
    const stream = events(reply);
    const { value: first } = await stream.next();
    const { id } = JSON.parse(first!) as { id: string };
    const [reservation] = await database.client.limitReservation.findMany({ where: { accountId } });
    expect(reservation!.id).toBe(id);

    await service.apis[0]!.process.kill();
    const row = () => database.client.usageRecord.findUnique({ where: { id } });
    await until(async () => (await row()) !== null);
    // As if the half minute were over after which its silence is death.
    const where = { id: reservation!.apiId };
    await database.client.apiProcess.update({ where, data: { seenAt: new Date(0) } });
    const left = () => database.client.limitReservation.count({ where: { accountId } });
    await until(async () => (await left()) === 0, undefined, 60_000);

    const written = (await row())!;
    expect(written).toMatchObject({ accountId, finishReason: 'lost', status: 499 });
    expect(written.promptTokens).toBeGreaterThan(0);
    expect(written.completionTokens).toBeGreaterThan(0);
    const counters = await database.client.limitCounter.findMany({ where: { accountId } });
    expect(counters.map(({ dayTokens }) => Number(dayTokens))).toEqual([(await usageOf(accountId)).tokens]);
    const hours = await database.client.usageHour.findMany({ where: { accountId } });
    expect(hours.map(({ requests }) => Number(requests))).toEqual([1]);
  }, 120_000);
});
