import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createLogger } from '../../src/platform/logger.js';
import { describeBackplanes } from '../support/backplanes.js';
import { chatModel, TestService, until } from './test-service.js';

describeBackplanes('limits in four API processes', (kit) => {
  let service: TestService;
  let database: Database;
  beforeEach(async () => {
    service = await TestService.start(kit.settings, { apis: 4 });
    database = openDatabase(kit.settings.databaseUrl, {
      logger: createLogger({ level: 'silent', name: 'test' }),
    });
  });
  afterEach(async () => {
    await database.close();
    await service.close();
  });

  // Of a day, so that the test does not run through the end of a minute.
  it('admit exactly as many of 500 concurrent requests as they say, and each leaves one row', async () => {
    const { id: accountId } = await database.client.account.findUniqueOrThrow({ where: { name: 'test' } });
    await database.client.limitOverride.create({ data: { accountId, model: chatModel, rpd: 100 } });
    const statuses = await Promise.all(
      Array.from({ length: 500 }, async (_, i) => {
        const response = await service.chat({ max_tokens: 1 }, { api: i % 4 });
        const body = await response.text();
        if (response.status === 429) expect(JSON.parse(body).code).toBe(50608);
        return response.status;
      }),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(100);
    expect(statuses.filter((status) => status === 429)).toHaveLength(400);
    await until(async () => (await database.client.usageRecord.count()) === 500);
    await until(async () => (await database.client.limitReservation.count()) === 0);
    const used = await database.client.usageRecord.aggregate({
      _sum: { promptTokens: true, completionTokens: true },
    });
    const counter = await database.client.limitCounter.findFirstOrThrow();
    expect(Number(counter.dayTokens)).toBe(used._sum.promptTokens! + used._sum.completionTokens!);
    const hours = await database.client.usageHour.aggregate({ _sum: { requests: true } });
    expect(Number(hours._sum.requests)).toBe(500);
  }, 120_000);
});
