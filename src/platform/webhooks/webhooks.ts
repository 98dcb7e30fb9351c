import { z } from 'zod';
import { type Delivery, deliverySchema, type Webhook } from '../../contract/admin.js';
import { ServiceError } from '../../contract/errors.js';
import type { Page } from '../../contract/notices.js';
import { type ChangeContext, makeChange } from '../change.js';
import type { Database } from '../database/database.js';
import type { Webhook as Row } from '../database/generated/client.js';
import { createWebhookSecret } from './signature.js';

type HasClient = Pick<Database, 'client'>;

/** Every webhook, the oldest first, without its secret. */
export async function listWebhooks({ client }: HasClient): Promise<Webhook[]> {
  const rows = await client.webhook.findMany({ orderBy: { id: 'asc' } });
  return rows.map(toWebhook);
}

/** Has every notice from now on sent to an address, wherever it leads: that is the operator's choice. */
export async function registerWebhook(
  url: string,
  context: ChangeContext,
): Promise<Webhook & { secret: string }> {
  const secret = createWebhookSecret();
  return makeChange(context, async (change) => {
    const webhook = toWebhook(await change.client.webhook.create({ data: { url, secret } }));
    await change.audit({ action: 'webhook.create', target: webhook.id, after: webhook });
    return { ...webhook, secret };
  });
}

/** @throws ServiceError routeNotFound when there is no such webhook. */
export async function removeWebhook(id: string, context: ChangeContext): Promise<Webhook> {
  return makeChange(context, async (change) => {
    const webhook = await requireWebhook(change.client, id);
    await change.client.webhook.delete({ where: { id } });
    await change.audit({ action: 'webhook.remove', target: id, before: webhook });
    return webhook;
  });
}

/**
 * The log of what was sent to a webhook, the newest first.
 * @throws ServiceError routeNotFound when there is no such webhook.
 */
export async function listDeliveries(
  { client }: HasClient,
  id: string,
  { limit, before }: Page,
): Promise<Delivery[]> {
  await requireWebhook(client, id);
  const rows = await client.webhookDelivery.findMany({
    where: { webhookId: id, id: before === undefined ? undefined : { lt: before } },
    include: { attempts: { orderBy: { id: 'asc' } }, notice: { select: { title: true } } },
    orderBy: { id: 'desc' },
    take: limit,
  });
  return rows.map((row) => ({
    id: row.id,
    notice: row.noticeId,
    title: row.notice.title,
    state: deliverySchema.shape.state.parse(row.state),
    created: row.createdAt.toISOString(),
    attempts: row.attempts.map(({ createdAt, status, error, durationMs }) => ({
      at: createdAt.toISOString(),
      status,
      error,
      duration_ms: durationMs,
    })),
  }));
}

async function requireWebhook(client: Pick<HasClient['client'], 'webhook'>, id: string): Promise<Webhook> {
  const row = z.uuid().safeParse(id).success ? await client.webhook.findUnique({ where: { id } }) : null;
  if (row === null) throw new ServiceError('routeNotFound', 'There is no such webhook.');
  return toWebhook(row);
}

function toWebhook({ id, url, createdAt }: Row): Webhook {
  return { id, url, created: createdAt.toISOString() };
}
