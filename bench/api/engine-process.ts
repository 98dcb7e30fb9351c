import { jobSchema } from '../../src/contract/job.js';
import { openBackplane } from '../../src/platform/backplane/open-backplane.js';
import { loadConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/logger.js';
import { Publisher } from '../../src/worker/publish.js';

/**
 * A worker whose engine answers at once: it takes jobs from the real queue and sends the frames of a short reply, as
 * a worker does. Argument: the model's id.
 */
const logger = createLogger({ level: 'warn', name: 'bench-engine' });
const { redisUrl, databaseUrl } = loadConfig();
const backplane = await openBackplane({ redisUrl, databaseUrl: databaseUrl!, logger });
const publisher = new Publisher({ channel: backplane.channel, logger });
const consumer = await backplane.consume(
  process.argv[2]!,
  async ({ payload, attempt }) => {
    const { id, replyTo, enqueuedAt } = jobSchema.parse(payload);
    const reply = publisher.reply({ id, attempt, replyTo, onLost: () => process.exit(1) });
    const queueMs = Date.now() - enqueuedAt;
    reply.send({ type: 'started', workerId: 'bench', queueMs });
    reply.send({ type: 'delta', choice: 0, text: 'A headrace leads water to a mill wheel.', tokens: 10 });
    reply.send({ type: 'finish', choice: 0, reason: 'stop' });
    reply.send({
      type: 'done',
      spent: { promptTokens: 20, completionTokens: 10, cachedTokens: 0 },
      timings: { queueMs, firstTokenMs: queueMs, totalMs: queueMs },
    });
  },
  { concurrency: 36 },
);
process.once('SIGTERM', async () => {
  await consumer.close({ drainMs: 0 });
  await backplane.close();
  process.exit(0);
});
process.send?.({ type: 'ready' });
