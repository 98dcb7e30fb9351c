import { loadCatalogue } from '../models/catalogue-file.js';
import { loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logger.js';
import { Shutdown } from '../platform/shutdown.js';
import { startApi } from './start-api.js';

/** Closing takes at most the time for requests to end, the time to settle them, and a little. */
const drainMs = 30_000;
const shutdownMs = drainMs + 10_000;

try {
  const config = loadConfig();
  if (config.databaseUrl === undefined)
    throw new Error('DATABASE_URL must name the database of this API process.');
  const logger = createLogger({ level: config.logLevel, name: 'api' });
  const catalogue = await loadCatalogue(config.modelsFile);
  const shutdown = new Shutdown({ logger, deadlineMs: shutdownMs });
  const api = await startApi({
    config,
    databaseUrl: config.databaseUrl,
    catalogue,
    logger,
    timing: { drainMs },
  });
  shutdown.add('the API', () => api.close());
  logger.info({ id: api.id }, `listening on ${api.host}, port ${api.port}`);
  process.send?.({ type: 'ready' });
} catch (error) {
  process.stderr.write(`headrace: ${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
