// A program for a child process: takes one job, says so, and never ends it. Arguments: settings as JSON, model, lock.
import { openBackplane } from '../../../src/platform/backplane/open-backplane.js';
import { createLogger } from '../../../src/platform/logger.js';

const [settings, model = '', lockMs] = process.argv.slice(2);
const logger = createLogger({ level: 'silent', name: 'stuck-consumer' });
const backplane = await openBackplane({ redisUrl: undefined, ...JSON.parse(settings ?? '{}'), logger });
await backplane.consume(
  model,
  ({ jobId, attempt }) => {
    process.send?.({ jobId, attempt });
    return new Promise(() => {});
  },
  { concurrency: 1, lockMs: Number(lockMs) },
);
process.send?.('ready');
