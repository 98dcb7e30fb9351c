import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ChangeContext } from '../../../src/platform/change.js';
import { type Database, openDatabase } from '../../../src/platform/database/database.js';
import { createNotice } from '../../../src/platform/notices/notices.js';
import { WebhookSender } from '../../../src/platform/webhooks/webhook-sender.js';
import { registerWebhook } from '../../../src/platform/webhooks/webhooks.js';
import { describeBackplanes } from '../../support/backplanes.js';
import { logger } from '../support/administration.js';
import { Receiver } from './receiver.js';

describeBackplanes('the sender of webhooks', (kit) => {
  let database: Database;
  let receiver: Receiver;
  let sender: WebhookSender | undefined;
  beforeEach(async () => {
    database = openDatabase(kit.settings.databaseUrl, { logger });
    receiver = await Receiver.start();
    await database.client.webhook.deleteMany();
  });
  afterEach(async () => {
    await sender?.close();
    await database.close();
    await receiver[Symbol.asyncDispose]();
  });

  const context = async (): Promise<ChangeContext> => ({
    database,
    backplane: await kit.open(),
    actor: 'cli:test',
    logger,
  });
  const start = async () => {
    sender = await WebhookSender.start({
      database,
      backplane: await kit.open(),
      logger,
      version: '1.2.3',
      retryDelayMs: () => 10,
    });
    return sender;
  };
  const titles = () => receiver.received.map(({ body }) => JSON.parse(body).data.title);

  it('sends each notice to each webhook once, however many processes send', async () => {
    const operator = await context();
    await registerWebhook(`${receiver.url}?a`, operator);
    await registerWebhook(`${receiver.url}?b`, operator);
    const other = await start();
    await start();
    await createNotice({ title: 'first', text: 'text' }, operator);
    await createNotice({ title: 'second', text: 'text' }, operator);
    await receiver.count(4);
    await other.close();
    expect(titles().sort()).toEqual(['first', 'first', 'second', 'second']);
    expect(receiver.received.filter(({ path }) => path === '/hook?a')).toHaveLength(2);
  });

  it('tries again until the receiver is there', async () => {
    const operator = await context();
    await registerWebhook(receiver.url, operator);
    await start();
    receiver.answerWith(502);
    await createNotice({ title: 'late', text: 'text' }, operator);
    await receiver.count(2);
    receiver.answerWith(200);
    const before = receiver.received.length;
    await receiver.count(before + 1);
    expect(new Set(titles())).toEqual(new Set(['late']));
  });

  it('finds a delivery whose task was lost', async () => {
    const operator = await context();
    await registerWebhook(receiver.url, operator);
    const lost: ChangeContext['backplane'] = {
      channel: operator.backplane.channel,
      tasks: () => ({ add: async () => {} }),
    };
    await createNotice({ title: 'forgotten', text: 'text' }, { ...operator, backplane: lost });
    const running = await start();

    await running.sweep(new Date(Date.now() + 1_000));

    await receiver.count(1);
    expect(titles()).toEqual(['forgotten']);
  });
});
