import { loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logger.js';
import { runApiProcess } from './api-process.js';

try {
  const config = loadConfig();
  await runApiProcess({ config, logger: createLogger({ level: config.logLevel, name: 'api' }) });
} catch (error) {
  process.stderr.write(`headrace: ${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
