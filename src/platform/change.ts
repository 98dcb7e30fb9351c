import { webhookTasks } from '../contract/names.js';
import type { Notice } from '../contract/notices.js';
import type { Backplane } from './backplane/backplane.js';
import type { Database } from './database/database.js';
import { Prisma } from './database/generated/client.js';
import type { Logger } from './logger.js';

/** Who changes something, and through what. */
export interface ChangeContext {
  readonly database: Pick<Database, 'client'>;
  readonly backplane: Pick<Backplane, 'channel' | 'tasks'>;
  /** As the audit log names them: `cli:<user>`, `admin:<address>`, `system`. */
  readonly actor: string;
  readonly logger: Logger;
}

/** A JSON object or nothing; never a secret. */
type Recorded = Prisma.InputJsonObject | undefined;

/**
 * One change by an operator while it is being made: the rows, what the audit log says of it, and what users are told
 * are stored together or not at all.
 */
export class Change {
  readonly client: Prisma.TransactionClient;
  readonly #actor: string;
  readonly channels = new Set<string>();
  readonly deliveries: string[] = [];

  constructor(client: Prisma.TransactionClient, actor: string) {
    this.client = client;
    this.#actor = actor;
  }

  /** Writes down what was changed. */
  async audit(entry: { action: string; target: string; before?: Recorded; after?: Recorded }): Promise<void> {
    const { action, target, before = Prisma.DbNull, after = Prisma.DbNull } = entry;
    await this.client.auditEntry.create({ data: { actor: this.#actor, action, target, before, after } });
  }

  /** Makes a notice, for one account or for everyone, and a delivery to each webhook. Returns the notice's id. */
  async notify(notice: {
    kind: Notice['kind'];
    title: string;
    text: string;
    model?: string;
    accountId?: string;
  }): Promise<string> {
    const { id } = await this.client.notice.create({ data: notice, select: { id: true } });
    const webhooks = await this.client.webhook.findMany({ select: { id: true } });
    const deliveries = await this.client.webhookDelivery.createManyAndReturn({
      data: webhooks.map((webhook) => ({ webhookId: webhook.id, noticeId: id })),
      select: { id: true },
    });
    this.deliveries.push(...deliveries.map((delivery) => delivery.id));
    return id;
  }

  /** Has every process that listens on this channel told once the change is made. */
  tell(channel: string): void {
    this.channels.add(channel);
  }
}

/** Changes take turns, so that each finds what the one before it left: the letters `hrch`. */
const advisoryLockKey = 0x68_72_63_68;

/**
 * The one way in which anything is changed. What `work` throws undoes all of it. Tells nobody: for a service that does
 * not run yet; else use {@link makeChange}.
 */
export async function storeChange<T>(
  { database, actor }: Pick<ChangeContext, 'database' | 'actor'>,
  work: (change: Change) => Promise<T>,
): Promise<{ result: T; change: Change }> {
  return database.client.$transaction(async (client) => {
    await client.$executeRaw`SELECT pg_advisory_xact_lock(${advisoryLockKey}::bigint)`;
    const change = new Change(client, actor);
    return { result: await work(change), change };
  });
}

/** Makes a change while the service runs: processes hear of it, and webhooks are sent. */
export async function makeChange<T>(
  context: ChangeContext,
  work: (change: Change) => Promise<T>,
): Promise<T> {
  const { backplane, logger } = context;
  const { result, change } = await storeChange(context, work);
  // Processes that are not told look by themselves a little later, and deliveries that wait are found by a sweep.
  const told = await Promise.allSettled([
    ...[...change.channels].map((channel) => backplane.channel.publish(channel, 'changed')),
    ...change.deliveries.map((id) => backplane.tasks(webhookTasks).add(id)),
  ]);
  for (const outcome of told) {
    if (outcome.status === 'rejected') {
      logger.warn({ err: outcome.reason }, 'a change could not be told at once');
    }
  }
  return result;
}
