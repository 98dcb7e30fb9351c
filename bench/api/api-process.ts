import { runApiProcess } from '../../src/api/api-process.js';
import { loadConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/logger.js';

/** An API process as `headrace api` runs it. */
const config = loadConfig();
await runApiProcess({ config, logger: createLogger({ level: config.logLevel, name: 'api' }) });
