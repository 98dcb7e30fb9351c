// A program for a child process: uses everything of a backplane, closes it, and has nothing left to do. The argument
// is the settings as JSON.
import { randomUUID } from 'node:crypto';
import { openBackplane } from '../../../src/platform/backplane/open-backplane.js';
import { createLogger } from '../../../src/platform/logger.js';
import { jobFor } from '../../support/jobs.js';

const logger = createLogger({ level: 'silent', name: 'closing-program' });
const backplane = await openBackplane({
  redisUrl: undefined,
  ...JSON.parse(process.argv[2] ?? '{}'),
  logger,
});
const model = randomUUID();
const name = `test.${model}`;
await new Promise<void>((resolve, reject) => {
  const run = async () => {
    await backplane.channel.subscribe(name, () => resolve());
    await backplane.consume(model, ({ jobId }) => backplane.channel.publish(name, jobId), { concurrency: 1 });
    await backplane.queue(model).add(jobFor(model));
  };
  run().catch(reject);
});
await backplane.close();
process.disconnect();
