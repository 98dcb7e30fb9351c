import { parseArgs } from 'node:util';
import { loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logger.js';
import { runWorkerProcess } from './worker-process.js';

let logger = createLogger({ level: 'info', name: 'worker' });
try {
  const config = loadConfig();
  logger = createLogger({ level: config.logLevel, name: 'worker' });
  const { values } = parseArgs({ options: { model: { type: 'string' } } });
  if (values.model === undefined) throw new Error('--model is missing: which model of the catalogue to run');
  await runWorkerProcess({ config, modelId: values.model, logger });
} catch (error) {
  // The message is all that people need; the rest is for those who debug.
  logger.debug({ err: error }, 'the start failed');
  logger.fatal(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
