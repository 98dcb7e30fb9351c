import type { WebhookEvent } from '../../contract/notices.js';
import type { Database } from '../database/database.js';
import { toNotice } from '../notices/notices.js';
import { signatureHeaders } from './signature.js';

const answerTimeoutMs = 10_000;

const firstRetryMs = 5_000;
const maxAttempts = 12;

/**
 * How long to wait after so many attempts: twice as long each time, from 5 seconds on, nearly three hours in all. Undefined when it is time to give up.
 */
export function retryDelayMs(attempts: number): number | undefined {
  return attempts >= maxAttempts ? undefined : firstRetryMs * 2 ** (attempts - 1);
}

export interface DeliverOptions {
  readonly database: Pick<Database, 'client'>;
  /** Of this service, for the User-Agent. */
  readonly version: string;
  readonly now?: () => Date;
  readonly retryDelayMs?: (attempts: number) => number | undefined;
  readonly timeoutMs?: number;
}

/**
 * Tries one delivery once and writes down how it went. What is not answered by a status from 200 to 299 in time is
 * tried again later; redirects are no such answer and are not followed.
 * @returns When to try again; undefined when there is nothing more to do.
 */
export async function deliver(
  deliveryId: string,
  options: DeliverOptions,
): Promise<{ retryMs: number } | undefined> {
  const { client } = options.database;
  const delivery = await client.webhookDelivery.findUnique({
    where: { id: deliveryId },
    include: { webhook: true, notice: true, _count: { select: { attempts: true } } },
  });
  // Its webhook was removed, or an earlier run had ended before the queue knew.
  if (delivery?.state !== 'pending') return undefined;
  const { webhook, notice } = delivery;
  const event: WebhookEvent = {
    type: 'notice.created',
    timestamp: notice.createdAt.toISOString(),
    data: { ...toNotice(notice), account_id: notice.accountId },
  };
  const attempt = await send(webhook, { id: deliveryId, body: JSON.stringify(event) }, options);
  const retryMs =
    attempt.error === null ? undefined : (options.retryDelayMs ?? retryDelayMs)(delivery._count.attempts + 1);
  const ended = attempt.error === null ? 'delivered' : 'failed';
  // Many, because the webhook may have been removed meanwhile.
  await client.$transaction(async (tx) => {
    const state = retryMs === undefined ? ended : 'pending';
    const { count } = await tx.webhookDelivery.updateMany({ where: { id: deliveryId }, data: { state } });
    if (count > 0) await tx.webhookAttempt.create({ data: { deliveryId, ...attempt } });
  });
  return retryMs === undefined ? undefined : { retryMs };
}

async function send(
  { url, secret }: { url: string; secret: string },
  { id, body }: { id: string; body: string },
  { version, now = () => new Date(), timeoutMs = answerTimeoutMs }: DeliverOptions,
): Promise<{ status: number | null; error: string | null; durationMs: number }> {
  const startedAt = performance.now();
  const duration = () => Math.round(performance.now() - startedAt);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': `headrace/${version}`,
        ...signatureHeaders({ id, sentAt: now(), body }, secret),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    // Nothing of it is wanted, and it may be endless.
    await response.body?.cancel();
    const { status, ok } = response;
    return { status, error: ok ? null : `status ${status}`, durationMs: duration() };
  } catch (error) {
    return { status: null, error: reasonOf(error, timeoutMs), durationMs: duration() };
  }
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${timeoutMs} ms`;
  // fetch says no more than that it failed; what happened is its cause.
  const { cause } = error as { cause?: NodeJS.ErrnoException };
  return (cause?.code ?? cause?.message ?? error.message).slice(0, 200);
}
