import type { Logger } from '../logger.js';
import type { Backplane } from './backplane.js';
import { PostgresBackplane } from './postgres-backplane.js';
import { RedisBackplane } from './redis-backplane.js';

/**
 * Redis where there is one, else the database.
 * @throws Error when the server cannot be reached; the message names the variable to look at, and no password.
 */
export async function openBackplane(options: {
  redisUrl: string | undefined;
  databaseUrl: string;
  logger: Logger;
}): Promise<Backplane> {
  const { redisUrl, databaseUrl, logger } = options;
  const [variable, url] = redisUrl
    ? (['REDIS_URL', redisUrl] as const)
    : (['DATABASE_URL', databaseUrl] as const);
  try {
    return redisUrl
      ? await RedisBackplane.open({ url: redisUrl, logger })
      : await PostgresBackplane.open({ url: databaseUrl, logger });
  } catch (error) {
    throw new Error(`${variable}: ${new URL(url).host} cannot be reached (${reasonOf(error)})`, {
      cause: error,
    });
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // An address that resolves to several fails with all of their errors and no text of its own.
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}
