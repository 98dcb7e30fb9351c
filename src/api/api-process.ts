import { loadCatalogue } from '../models/catalogue-file.js';
import { type Config, ConfigError } from '../platform/config.js';
import type { Logger } from '../platform/logger.js';
import { Shutdown } from '../platform/shutdown.js';
import { startApi } from './start-api.js';

/** Closing takes at most the time for requests to end, the time to settle them, and a little. */
const drainMs = 30_000;
const exitDeadlineMs = drainMs + 10_000;

/**
 * Runs the API until the process is told to leave. A parent that forked it hears `{type: 'ready'}`.
 * @throws Error when the API cannot be started.
 */
export async function runApiProcess({ config, logger }: { config: Config; logger: Logger }): Promise<void> {
  const { databaseUrl } = config;
  if (databaseUrl === undefined) {
    throw new ConfigError('An API process needs DATABASE_URL: the database with its accounts and keys.');
  }
  const catalogue = await loadCatalogue(config.modelsFile);
  const shutdown = new Shutdown({ logger, deadlineMs: exitDeadlineMs });
  const api = await startApi({ config, databaseUrl, catalogue, logger, timing: { drainMs } });
  shutdown.add('the API', () => api.close());
  process.send?.({ type: 'ready' });
  logger.info({ id: api.id }, `listening on ${api.host}, port ${api.port}`);
}
