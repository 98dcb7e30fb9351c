import { webhookTasks } from '../../contract/names.js';
import type { Backplane, JobConsumer } from '../backplane/backplane.js';
import type { Logger } from '../logger.js';
import { type DeliverOptions, deliver } from './deliver.js';

/** Deliveries under way at once in one process. */
const concurrency = 4;
/** How often deliveries are looked for whose task was lost, and how old those are. */
const sweepMs = 30_000;
const maxSwept = 1_000;

type SenderOptions = DeliverOptions & {
  readonly backplane: Pick<Backplane, 'tasks' | 'work'>;
  readonly logger: Logger;
};

/**
 * Sends webhooks from this process. Any number of processes may: a delivery is one task, which one of them has.
 */
export class WebhookSender {
  readonly #options: SenderOptions;
  readonly #timer: NodeJS.Timeout;
  #consumer: JobConsumer | undefined;

  /** @throws Error when the queue cannot be reached. */
  static async start(options: SenderOptions): Promise<WebhookSender> {
    const sender = new WebhookSender(options);
    try {
      sender.#consumer = await options.backplane.work(webhookTasks, (id) => deliver(id, options), {
        concurrency,
      });
      return sender;
    } catch (error) {
      await sender.close();
      throw error;
    }
  }

  private constructor(options: SenderOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      void this.sweep(new Date(Date.now() - sweepMs)).catch((error) => {
        options.logger.warn({ err: error }, 'webhooks that wait could not be looked for');
      });
    }, sweepMs).unref();
  }

  /** Hands in what waits since before `until`: a queue that was emptied forgets it, the database does not. */
  async sweep(until: Date): Promise<void> {
    const { database, backplane } = this.#options;
    const waiting = await database.client.webhookDelivery.findMany({
      where: { state: 'pending', createdAt: { lt: until } },
      select: { id: true },
      orderBy: { createdAt: 'asc' },
      take: maxSwept,
    });
    for (const { id } of waiting) await backplane.tasks(webhookTasks).add(id);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#consumer?.close({ drainMs: 0 });
  }
}
