import type { Config } from '../../platform/config.js';
import type { Logger } from '../../platform/logger.js';
import type { Terminal } from '../client/terminal.js';
import { migrateDatabase, withDatabaseServer } from '../database-server.js';

/** `headrace migrate`. */
export async function runMigrate(options: {
  config: Config;
  logger: Logger;
  terminal: Terminal;
}): Promise<void> {
  const { config, logger, terminal } = options;
  const applied = await withDatabaseServer({ config, logger }, (url) => migrateDatabase(url, config));
  const text = applied.length === 0 ? 'The schema is up to date.' : `Applied ${applied.join(', ')}.`;
  terminal.stdout.write(`${text}\n`);
}
