import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { keepFor, removeOld } from '../../src/api/retention.js';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createLogger } from '../../src/platform/logger.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const logger = createLogger({ level: 'silent', name: 'test' });
const dayMs = 86_400_000;
const ago = (days: number) => new Date(Date.now() - days * dayMs);
const { signal } = new AbortController();

let server: TestDatabase;
let database: Database;
let webhookId: string;
beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase(server.url, { logger });
  ({ id: webhookId } = await database.client.webhook.create({ data: { url: 'https://x', secret: 's' } }));
});
afterAll(async () => {
  await database.close();
  await server.drop();
});
beforeEach(async () => {
  await database.client.notice.deleteMany();
  await database.client.auditEntry.deleteMany();
  await database.client.usageRecord.deleteMany();
});

const addNotice = (days: number) =>
  database.client.notice.create({
    data: {
      kind: 'general',
      title: `${days} days old`,
      text: 'x',
      createdAt: ago(days),
      deliveries: {
        create: { webhookId, state: 'delivered', attempts: { create: { status: 200, durationMs: 1 } } },
      },
    },
  });
const addEntry = (days: number) =>
  database.client.auditEntry.create({
    data: { actor: 'cli:test', action: 'x', target: `${days} days old`, createdAt: ago(days) },
  });
const addUsage = (days: number) =>
  database.client.usageRecord.create({
    data: {
      id: randomUUID(),
      accountId: randomUUID(),
      keyId: randomUUID(),
      model: `${days} days old`,
      operation: 'chat',
      promptTokens: 1,
      completionTokens: 1,
      finishReason: 'stop',
      status: 200,
      totalMs: 1,
      createdAt: ago(days),
    },
  });
const kept = async () => ({
  notices: (await database.client.notice.findMany()).map(({ title }) => title),
  deliveries: await database.client.webhookDelivery.count(),
  attempts: await database.client.webhookAttempt.count(),
  audit: (await database.client.auditEntry.findMany()).map(({ target }) => target),
  usage: (await database.client.usageRecord.findMany()).map(({ model }) => model),
});

describe('what is older than it is kept', () => {
  it('leaves in small batches: notices with what was sent of them', async () => {
    for (let i = 0; i < 5; i++) await addNotice(11);
    await addNotice(9);
    expect(await removeOld('notices', { database, days: 10, rows: 2 }, signal)).toBe(5);
    expect(await kept()).toMatchObject({ notices: ['9 days old'], deliveries: 1, attempts: 1 });
  });

  it('leaves in small batches: entries of the audit log', async () => {
    for (let i = 0; i < 5; i++) await addEntry(11);
    await addEntry(9);
    expect(await removeOld('audit', { database, days: 10, rows: 2 }, signal)).toBe(5);
    expect(await kept()).toMatchObject({ audit: ['9 days old'] });
  });

  it('leaves once, whichever of several processes removes it', async () => {
    for (let i = 0; i < 20; i++) await addEntry(11);
    const removing = Array.from({ length: 3 }, () =>
      removeOld('audit', { database, days: 10, rows: 4 }, signal),
    );
    const removed = (await Promise.all(removing)).reduce((sum, each) => sum + each, 0);
    expect(removed).toBeLessThanOrEqual(20);
    await removeOld('audit', { database, days: 10 }, signal);
    expect(await kept()).toMatchObject({ audit: [] });
  });

  it('leaves a service that runs, each kind after its own time', async () => {
    for (const days of [1, 3, 5, 7]) {
      await addUsage(days);
      await addNotice(days);
      await addEntry(days);
    }
    const stop = keepFor({ usage: 2, notices: 4, audit: 6 }, { database, logger });
    await expect.poll(kept).toEqual({
      usage: ['1 days old'],
      notices: ['1 days old', '3 days old'],
      deliveries: 2,
      attempts: 2,
      audit: ['1 days old', '3 days old', '5 days old'],
    });
    await stop();
  });
});
