import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { abortable } from '../abortable.js';
import type { Logger } from '../logger.js';
import type { Channel, Subscription } from './backplane.js';
import { MessageAssembler, splitMessage } from './message-parts.js';
import type { OutageLog } from './outage-log.js';
import { Subscriptions } from './subscriptions.js';

const connectTimeoutMs = 5_000;
const subscribeTimeoutMs = 5_000;
const maxRetryDelayMs = 1_000;
/** Messages that one query publishes; those that come while it runs wait for the next. */
const batchSize = 256;
/** Postgres cuts longer identifiers off. */
const maxNameBytes = 63;

interface Outgoing {
  readonly parts: readonly string[];
  readonly channel: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** LISTEN and NOTIFY on one connection of its own, which is replaced for as long as it takes when it breaks. */
export class PostgresChannel implements Channel {
  readonly #url: string;
  readonly #outage: OutageLog;
  readonly #subscriptions: Subscriptions;
  readonly #publisher = randomBytes(6).toString('hex');
  readonly #assembler = new MessageAssembler();
  readonly #closed = new AbortController();
  #sequence = 0;
  #outbox: Outgoing[] = [];
  #sending = false;
  /** Undefined while the connection is away. */
  #client: pg.Client | undefined;
  /** The present connection or the next one. */
  #connection: Promise<pg.Client>;

  /** @throws Error when the server does not answer within a few seconds. */
  static async open(options: { url: string; logger: Logger; outage: OutageLog }): Promise<PostgresChannel> {
    const channel = new PostgresChannel(options);
    channel.#connection = channel.#connect();
    await channel.#connection;
    return channel;
  }

  private constructor({ url, logger, outage }: { url: string; logger: Logger; outage: OutageLog }) {
    this.#url = url;
    this.#outage = outage;
    this.#subscriptions = new Subscriptions(logger);
    this.#connection = Promise.reject(new Error('not connected'));
    this.#connection.catch(() => {});
  }

  publish(name: string, message: string): Promise<void> {
    if (!this.#client) return Promise.reject(new Error('the channel is away'));
    this.#sequence += 1;
    const parts = splitMessage(message, this.#publisher, this.#sequence);
    return new Promise((resolve, reject) => {
      this.#outbox.push({ parts, channel: channelId(name), resolve, reject });
      if (!this.#sending) void this.#send();
    });
  }

  async subscribe(name: string, listener: (message: string) => void): Promise<Subscription> {
    const channel = channelId(name);
    this.#subscriptions.add(channel, listener);
    const close = async () => {
      if (!this.#subscriptions.remove(channel, listener)) return;
      await this.#client?.query(`UNLISTEN ${pg.escapeIdentifier(channel)}`).catch(() => {});
    };
    try {
      await abortable(this.#listen(channel), AbortSignal.timeout(subscribeTimeoutMs));
      return { close };
    } catch (error) {
      await close();
      throw error;
    }
  }

  async check(signal: AbortSignal): Promise<void> {
    if (!this.#client) throw new Error('the channel is away');
    await abortable(this.#client.query('SELECT 1'), signal);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#client?.end().catch(() => {});
  }

  async #listen(channel: string): Promise<void> {
    for (;;) {
      const client = await this.#connection;
      try {
        await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
        return;
      } catch (error) {
        // The connection broke in between: again on the next one.
        if (this.#client === client) throw error;
      }
    }
  }

  async #send(): Promise<void> {
    this.#sending = true;
    while (this.#outbox.length > 0) {
      const batch = this.#outbox.splice(0, batchSize);
      const channels = batch.flatMap(({ channel, parts }) => parts.map(() => channel));
      try {
        if (!this.#client) throw new Error('the channel is away');
        await this.#client.query(
          'SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS part (channel, payload)',
          [channels, batch.flatMap(({ parts }) => parts)],
        );
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#sending = false;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    client.on('notification', ({ channel, payload }) => {
      const message = this.#assembler.accept(payload ?? '');
      if (message !== undefined) this.#subscriptions.deliver(channel, message);
    });
    // `end` follows every error; an error without a listener would end the process.
    client.on('error', (error) => this.#outage.lost(error));
    await client.connect();
    for (const channel of this.#subscriptions.names)
      await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
    client.once('end', () => {
      this.#client = undefined;
      this.#assembler.clear();
      this.#connection = this.#reconnect();
      this.#connection.catch(() => {});
    });
    this.#client = client;
    return client;
  }

  async #reconnect(): Promise<pg.Client> {
    for (let retryDelayMs = 100; ; retryDelayMs = Math.min(2 * retryDelayMs, maxRetryDelayMs)) {
      this.#closed.signal.throwIfAborted();
      try {
        const client = await this.#connect();
        if (this.#closed.signal.aborted) await client.end();
        this.#outage.restored();
        return client;
      } catch (error) {
        this.#outage.lost(error);
        await delay(retryDelayMs, undefined, { signal: this.#closed.signal });
      }
    }
  }
}

/** The name as Postgres can keep it. */
function channelId(name: string): string {
  if (Buffer.byteLength(name) <= maxNameBytes) return name;
  return `headrace.${createHash('sha256').update(name).digest('base64url')}`;
}
