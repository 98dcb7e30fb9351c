import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { webhookEventSchema } from '../../../src/contract/notices.js';
import { createNotice } from '../../../src/platform/notices/notices.js';
import { deliver, retryDelayMs } from '../../../src/platform/webhooks/deliver.js';
import { listDeliveries, registerWebhook, removeWebhook } from '../../../src/platform/webhooks/webhooks.js';
import { freePort } from '../../support/free-port.js';
import { useAdministration } from '../support/administration.js';
import { Receiver } from './receiver.js';

const administration = useAdministration();
const now = () => new Date('2026-06-01T12:00:00Z');

let receiver: Receiver;
beforeEach(async () => {
  receiver = await Receiver.start();
  await administration.database.client.webhook.deleteMany();
  administration.backplane.addedTasks.splice(0);
});
afterEach(() => receiver[Symbol.asyncDispose]());

/** A webhook, and a notice on its way to it. */
async function sendNotice(url = receiver.url) {
  const webhook = await registerWebhook(url, administration.context);
  const notice = await createNotice({ title: 'Title', text: 'Text' }, administration.context);
  const [task] = administration.backplane.addedTasks;
  expect(task).toMatchObject({ name: 'webhooks' });
  return { webhook, notice, deliveryId: task!.id };
}

const tryOnce = (deliveryId: string, options: { timeoutMs?: number } = {}) =>
  deliver(deliveryId, { database: administration.database, version: '1.2.3', now, ...options });
const log = async (webhookId: string) =>
  (await listDeliveries(administration.database, webhookId, { limit: 10 }))[0]!;

describe('a delivery', () => {
  it('carries the notice, signed so that its receiver can tell where it is from', async () => {
    const { webhook, notice, deliveryId } = await sendNotice();

    expect(await tryOnce(deliveryId)).toBeUndefined();

    const [{ headers, body, path }] = (await receiver.count(1)) as [(typeof receiver.received)[0]];
    expect(path).toBe('/hook');
    expect(webhookEventSchema.parse(JSON.parse(body)).data).toEqual({ ...notice, account_id: null });
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'headrace/1.2.3',
      'webhook-id': deliveryId,
      'webhook-timestamp': '1780315200',
    });
    const key = Buffer.from(webhook.secret.slice('whsec_'.length), 'base64');
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const signature = createHmac('sha256', key).update(signed).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${signature}`);
    expect(await log(webhook.id)).toMatchObject({
      state: 'delivered',
      notice: notice.id,
      attempts: [{ status: 200, error: null }],
    });
  });

  it('that is refused is tried again later and later, and in the log until it succeeds', async () => {
    const { webhook, deliveryId } = await sendNotice();
    receiver.answerWith(500);
    expect(await tryOnce(deliveryId)).toEqual({ retryMs: 5_000 });
    expect(await tryOnce(deliveryId)).toEqual({ retryMs: 10_000 });
    expect(await log(webhook.id)).toMatchObject({ state: 'pending' });
    receiver.answerWith(204);
    expect(await tryOnce(deliveryId)).toBeUndefined();
    const { state, attempts } = await log(webhook.id);
    expect(state).toBe('delivered');
    expect(attempts.map(({ status, error }) => [status, error])).toEqual([
      [500, 'status 500'],
      [500, 'status 500'],
      [204, null],
    ]);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id']))).toEqual(
      new Set([deliveryId]),
    );
  });

  it('is given up after its last attempt', async () => {
    const { webhook, deliveryId } = await sendNotice();
    receiver.answerWith(503);
    let retries = 0;
    while ((await tryOnce(deliveryId)) !== undefined) retries += 1;
    expect(retries).toBe(11);
    const { state, attempts } = await log(webhook.id);
    expect(state).toBe('failed');
    expect(attempts).toHaveLength(12);
  });

  it('is made once, though its task runs twice', async () => {
    const { deliveryId } = await sendNotice();
    await tryOnce(deliveryId);
    expect(await tryOnce(deliveryId)).toBeUndefined();
    expect(receiver.received).toHaveLength(1);
  });

  it('does not follow a redirect', async () => {
    const { webhook, deliveryId } = await sendNotice();
    receiver.answerWith(307, { location: '/elsewhere' });
    expect(await tryOnce(deliveryId)).toEqual({ retryMs: 5_000 });
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook']);
    expect((await log(webhook.id)).attempts).toMatchObject([{ status: 307, error: 'status 307' }]);
  });

  it('does not wait for a receiver that says nothing', async () => {
    const { webhook, deliveryId } = await sendNotice();
    receiver.answer = () => {};
    expect(await tryOnce(deliveryId, { timeoutMs: 50 })).toEqual({ retryMs: 5_000 });
    expect((await log(webhook.id)).attempts).toMatchObject([
      { status: null, error: 'no answer within 50 ms' },
    ]);
  });

  it('does not read what a receiver sends without end', async () => {
    const { deliveryId } = await sendNotice();
    receiver.answer = (response) => void response.writeHead(200).write('x'.repeat(1 << 16));
    expect(await tryOnce(deliveryId)).toBeUndefined();
  });

  it('says in its log that nobody listens', async () => {
    const { webhook, deliveryId } = await sendNotice(`http://127.0.0.1:${await freePort()}/`);
    expect(await tryOnce(deliveryId)).toEqual({ retryMs: 5_000 });
    expect((await log(webhook.id)).attempts).toMatchObject([{ status: null, error: 'ECONNREFUSED' }]);
  });

  it('to a webhook that was removed is none', async () => {
    const { webhook, deliveryId } = await sendNotice();
    await removeWebhook(webhook.id, administration.context);
    expect(await tryOnce(deliveryId)).toBeUndefined();
    expect(receiver.received).toEqual([]);
  });
});

describe('a webhook', () => {
  it('is in the audit log without its secret', async () => {
    const { secret, ...webhook } = await registerWebhook(receiver.url, administration.context);
    expect(await administration.lastAudit()).toMatchObject({ action: 'webhook.create', after: webhook });
    await removeWebhook(webhook.id, administration.context);
    expect(await administration.lastAudit()).toMatchObject({ action: 'webhook.remove', before: webhook });
    const entries = await administration.database.client.auditEntry.findMany();
    expect(JSON.stringify(entries)).not.toContain(secret.slice(6));
  });

  it('that does not exist cannot be removed', async () => {
    for (const id of ['nothing', '0190a000-0000-7000-8000-00000000ffff']) {
      await expect(removeWebhook(id, administration.context)).rejects.toThrow('There is no such webhook.');
    }
  });
});

describe('the wait after an attempt', () => {
  it('doubles each time, until it is time to give up', () => {
    const waits = Array.from({ length: 12 }, (_, i) => retryDelayMs(i + 1));
    expect(waits.slice(0, 4)).toEqual([5_000, 10_000, 20_000, 40_000]);
    expect(waits.slice(10)).toEqual([5_120_000, undefined]);
  });
});
