import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { estimateTokens } from '../../src/api/token-estimate.js';
import { type Database, openDatabase } from '../../src/platform/database/database.js';
import { createLogger } from '../../src/platform/logger.js';
import { describeBackplanes } from '../support/backplanes.js';
import { chatModel, rerankModel, TestService, until } from './test-service.js';

describeBackplanes('limits in four API processes', (kit) => {
  let service: TestService;
  let database: Database;
  beforeAll(async () => {
    service = await TestService.start(kit.settings, { apis: 4 });
    database = openDatabase(kit.settings.databaseUrl, {
      logger: createLogger({ level: 'silent', name: 'test' }),
    });
  });
  beforeEach(async () => {
    const { limitOverride, limitCounter, usageRecord, usageHour } = database.client;
    await limitOverride.deleteMany();
    await limitCounter.deleteMany();
    await usageRecord.deleteMany();
    await usageHour.deleteMany();
  });
  afterAll(async () => {
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

  /** Words that the models of the test do not know, and the estimate takes for usual ones. */
  const underEstimated = 'strength rhythm syzygy '.repeat(4);

  it.each([
    ['chat', chatModel, { messages: [{ role: 'user', content: underEstimated }], max_tokens: 1 }],
    ['rerank', rerankModel, { query: 'zqx', documents: [underEstimated] }],
  ])(
    'on tokens are not passed by %s requests that were all under-estimated',
    async (operation, model, body) => {
      const { id: accountId } = await database.client.account.findUniqueOrThrow({ where: { name: 'test' } });
      const tpd = 1_500;
      await database.client.limitOverride.create({ data: { accountId, model, tpd } });
      const path = operation === 'chat' ? '/v1/chat/completions' : '/v1/rerank';
      const ask = async (api: number) => {
        const response = await service.post(path, { model, ...body }, { api });
        const text = await response.text();
        if (response.status === 429) {
          expect(JSON.parse(text).code).toBe(50606);
          expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(60);
        }
        return response.status;
      };
      const statuses = await Promise.all(Array.from({ length: 60 }, (_, i) => ask(i % 4)));
      expect(new Set(statuses)).toEqual(new Set([200, 429]));
      await until(async () => (await database.client.limitReservation.count()) === 0);
      // Whoever was refused for what others had set aside may come now.
      do statuses.push(await ask(0));
      while (statuses.at(-1) === 200);
      await until(async () => (await database.client.limitReservation.count()) === 0);
      await until(async () => (await database.client.usageRecord.count()) === statuses.length);

      const rows = await database.client.usageRecord.findMany({ where: { status: 200 } });
      const costs = rows.map(({ promptTokens, completionTokens }) => promptTokens + completionTokens);
      const used = costs.reduce((sum, cost) => sum + cost, 0);
      expect(costs[0]).toBeGreaterThan(1.2 * estimateTokens(underEstimated));
      expect(used).toBeLessThanOrEqual(tpd);
      expect(used + costs[0]!).toBeGreaterThan(tpd);
      expect(Number((await database.client.limitCounter.findFirstOrThrow()).dayTokens)).toBe(used);
    },
    120_000,
  );
});
