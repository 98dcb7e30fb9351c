import { randomUUID } from 'node:crypto';
import type { Engine } from '../engine/engine.js';
import { startEngineThread } from '../engine/engine-thread.js';
import type { CatalogueModel } from '../models/catalogue.js';
import { loadCatalogue } from '../models/catalogue-file.js';
import { prepareModel } from '../models/prepare-model.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import { openBackplane } from '../platform/backplane/open-backplane.js';
import { type Config, ConfigError } from '../platform/config.js';
import { openDatabase } from '../platform/database/database.js';
import { LineProgress } from '../platform/line-progress.js';
import type { Logger } from '../platform/logger.js';
import { engineSettings } from './engine-settings.js';
import { judgeTokens } from './judge-format.js';
import { measureStates } from './measure-states.js';
import { Tokenizer } from './tokenizer.js';
import { createWorker, type Worker } from './worker.js';

export interface StartWorkerOptions {
  readonly config: Config;
  readonly modelId: string;
  readonly logger: Logger;
  /** Gives up the start. */
  readonly signal: AbortSignal;
  /** The script of the engine's thread, for those who do not run the built one. */
  readonly engineScript?: URL;
}

export interface StartedWorker extends Worker {
  /** For its counters. */
  readonly engine: Engine;
}

/**
 * Starts everything a worker of one model consists of: the compiled model from the cache (compiled now when it is
 * not there), the engine's thread, the backplane. `close` ends all of it.
 * @throws Error when a part cannot be started, saying which and why, or the signal's reason; nothing is left then.
 */
export async function startWorker(options: StartWorkerOptions): Promise<StartedWorker> {
  const { config, modelId, logger, signal, engineScript } = options;
  const entry = await findEntry(config.modelsFile, modelId);
  const opened: { close(): Promise<void> }[] = [];
  const closeOpened = async () => {
    for (const part of opened.splice(0).reverse()) await part.close();
  };
  try {
    // First, so that a server that is away is known before a model is compiled for minutes.
    const backplane = await open(config, logger);
    opened.push(backplane);
    const database = config.databaseUrl
      ? openDatabase(config.databaseUrl, { logger, maxConnections: 1 })
      : undefined;
    if (database !== undefined) opened.push(database);
    const progress = new LineProgress((line) => logger.info(line));
    const { folder, manifest } = await prepareModel({
      entry,
      catalogueFile: config.modelsFile,
      cacheDir: config.cacheDir,
      hubUrl: config.hubUrl,
      hubToken: config.hubToken,
      python: config.python,
      measureStates,
      onProgress: ({ stage, share }) => progress.update(`${stage} ${modelId}`, share),
      signal,
    });
    logger.info(`loading ${modelId}`);
    const tokenizer = await Tokenizer.load(folder);
    const isJudge = entry.task === 'rerank' && manifest.kind === 'decoder';
    const judge = isJudge ? await judgeTokens(tokenizer) : undefined;
    const settings = engineSettings({ folder, manifest, entry, config, judge });
    const starting = startEngineThread(settings, { signal, script: engineScript });
    // Before anything else can fail: a thread that comes up after that is closed too.
    opened.push({ close: () => starting.then((thread) => thread.close()).catch(() => {}) });
    const engine = await starting;
    signal.throwIfAborted();
    const worker = await createWorker({
      id: randomUUID(),
      config,
      entry,
      tokenizer,
      engine,
      backplane,
      database,
      logger,
      clock: Date,
    });
    return {
      id: worker.id,
      failed: worker.failed,
      engine,
      close: async (how) => {
        await worker.close(how);
        await closeOpened();
      },
    };
  } catch (error) {
    await closeOpened();
    throw error;
  }
}

async function findEntry(modelsFile: string, modelId: string): Promise<CatalogueModel> {
  const { models } = await loadCatalogue(modelsFile);
  const entry = models.find(({ id }) => id === modelId);
  if (entry !== undefined) return entry;
  const known = models.map(({ id }) => id).join(', ');
  throw new Error(`${modelId} is not in ${modelsFile}, which lists ${known}`);
}

function open({ redisUrl, databaseUrl }: Config, logger: Logger): Promise<Backplane> {
  if (redisUrl === undefined && databaseUrl === undefined) {
    throw new ConfigError('A worker needs REDIS_URL or DATABASE_URL: the queue it takes requests from.');
  }
  // Where Redis carries the queue the database is not asked.
  return openBackplane({ redisUrl, databaseUrl: databaseUrl ?? '', logger });
}
