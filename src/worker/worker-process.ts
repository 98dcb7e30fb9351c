import type { Config } from '../platform/config.js';
import { hugePageVariables, lacksHugePages } from '../platform/huge-pages.js';
import type { Logger } from '../platform/logger.js';
import { Shutdown } from '../platform/shutdown.js';
import { startWorker } from './start-worker.js';

/** How long requests may go on after the process was told to leave; the whole service stops within 5 seconds. */
const drainMs = 2_000;
const exitDeadlineMs = 4_500;

/**
 * Runs a worker until the process is told to leave or the engine fails; whoever supervises the process starts it
 * again in the latter case. A parent that forked it hears `{type: 'ready'}`.
 * @throws Error when the worker cannot be started.
 */
export async function runWorkerProcess(options: {
  config: Config;
  modelId: string;
  logger: Logger;
}): Promise<void> {
  const { modelId, logger } = options;
  logger.info(`starting a worker of ${modelId}`);
  const shutdown = new Shutdown({ logger, deadlineMs: exitDeadlineMs });
  const worker = await startWorker({ ...options, signal: shutdown.signal }).catch((error: unknown) => {
    if (!shutdown.signal.aborted) throw error;
  });
  // Told to leave before it was there; the exit is under way.
  if (worker === undefined) return;
  shutdown.add('the worker', () => worker.close({ drainMs }));
  void worker.failed.then((error) => shutdown.begin(`the engine failed: ${error.message}`, 1));
  process.send?.({ type: 'ready' });
  logger.info({ worker: worker.id, model: modelId }, 'the worker takes requests');
  if (await lacksHugePages(process.env)) {
    const { GLIBC_TUNABLES } = hugePageVariables(process.env);
    logger.info(
      `memory comes in small pages; with GLIBC_TUNABLES=${GLIBC_TUNABLES} the worker would be quicker`,
    );
  }
}
