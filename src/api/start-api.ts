import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { Catalogue } from '../models/catalogue.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import { openBackplane } from '../platform/backplane/open-backplane.js';
import type { Config } from '../platform/config.js';
import { openDatabase } from '../platform/database/database.js';
import { listenFailure } from '../platform/listen-failure.js';
import type { Logger } from '../platform/logger.js';
import { packageVersion } from '../platform/package-version.js';
import { PresenceBoard } from '../platform/presence.js';
import { WebhookSender } from '../platform/webhooks/webhook-sender.js';
import { toApiDatabase } from './api-database.js';
import { type AppOptions, buildApp } from './app.js';
import { keepFor } from './retention.js';
import { warmUp } from './warm-up.js';

/** Longer than a new connection may take. */
const connectTimeoutMs = 6_000;

export interface ApiOptions {
  readonly config: Config;
  /** Its migrations are applied already. */
  readonly databaseUrl: string;
  readonly catalogue: Catalogue;
  readonly logger: Logger;
  readonly timing?: AppOptions['timing'];
}

export interface RunningApi {
  /** The id under which its presence is announced. */
  readonly id: string;
  readonly host: string;
  /** The port that was chosen, where the configuration leaves it to the system. */
  readonly port: number;
  /** What the process is connected to; both close with it. */
  readonly backplane: Backplane;
  readonly presence: PresenceBoard;
  /** Refuses new requests, lets the others end for `timing.drainMs`, and closes everything. Idempotent. */
  close(): Promise<void>;
}

/**
 * Runs an API process: opens what it needs and listens.
 * @throws Error with one clear line when a server cannot be reached or the address cannot be used; nothing stays open.
 */
export async function startApi(options: ApiOptions): Promise<RunningApi> {
  const { config, databaseUrl, catalogue, logger, timing } = options;
  const id = randomUUID();
  warmUp();
  const opened: (() => Promise<void>)[] = [];
  const closeAll = async () => {
    for (let close = opened.pop(); close !== undefined; close = opened.pop()) await close();
  };
  try {
    const database = openDatabase(databaseUrl, { logger });
    opened.push(() => database.close());
    await database.check(AbortSignal.timeout(connectTimeoutMs)).catch((error: Error) => {
      const reason = `${new URL(databaseUrl).host} cannot be reached (${error.message})`;
      throw new Error(`DATABASE_URL: ${reason}`, { cause: error });
    });
    const backplane = await openBackplane({ redisUrl: config.redisUrl, databaseUrl, logger });
    opened.push(() => backplane.close());
    const presence = await PresenceBoard.join({
      channel: backplane.channel,
      describe: () => ({ role: 'api', id }),
    });
    opened.push(() => presence.leave());
    const sender = await WebhookSender.start({ database, backplane, logger, version: packageVersion() });
    opened.push(() => sender.close());
    opened.push(keepFor(config.retentionDays, { database, logger }));
    const app = await buildApp({
      apiId: id,
      config,
      database: toApiDatabase(database),
      admin: config.adminToken === undefined ? undefined : { token: config.adminToken, database },
      backplane,
      presence,
      catalogue,
      logger,
      version: packageVersion(),
      timing,
    });
    opened.push(() => app.close());
    await app.listen({ host: config.host, port: config.port }).catch((error: NodeJS.ErrnoException) => {
      throw new Error(listenFailure(config, error), { cause: error });
    });
    const { port } = app.server.address() as AddressInfo;
    let closing: Promise<void> | undefined;
    return {
      id,
      host: config.host,
      port,
      backplane,
      presence,
      close: () => {
        closing ??= closeAll();
        return closing;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}
