import { ServiceError } from '../contract/errors.js';
import type { Engine } from '../engine/engine.js';
import type { CatalogueModel } from '../models/catalogue.js';
import type { Backplane, JobConsumer } from '../platform/backplane/backplane.js';
import type { Config } from '../platform/config.js';
import type { Database } from '../platform/database/database.js';
import type { Logger } from '../platform/logger.js';
import { PresenceBoard } from '../platform/presence.js';
import { ApiProcesses } from './api-processes.js';
import { Cancellations } from './cancel.js';
import type { Clock } from './clock.js';
import { createJobHandler, type JobRunner } from './consume.js';
import { EngineReport } from './engine-report.js';
import { EngineRuns } from './engine-runs.js';
import { servedContext } from './engine-settings.js';
import type { Ending, HeldRequest } from './held-request.js';
import { HeldRequests } from './held-requests.js';
import { OrphanLedger } from './orphan-ledger.js';
import { Publisher } from './publish.js';
import { ReplyGrammars } from './reply-grammars.js';
import { Reservations } from './reservations.js';
import { ChatRunner } from './run-chat.js';
import { RerankRunner } from './run-rerank.js';
import type { Tokenizer } from './tokenizer.js';
import { toolFormatOf } from './tools/tool-format.js';

export interface WorkerOptions {
  /** Of this process, never used before. */
  readonly id: string;
  readonly config: Pick<Config, 'maxSequences' | 'lockMs'>;
  readonly entry: CatalogueModel;
  readonly tokenizer: Tokenizer;
  /** Used by this worker alone, and closed by whoever opened it. */
  readonly engine: Engine;
  readonly backplane: Backplane;
  /**
   * For limits of tokens, and for the cost of requests whose API process dies; without it, requests use more than was
   * estimated, and the ledger only says that they were lost.
   */
  readonly database?: Pick<Database, 'client' | 'query'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** The script in which grammars are compiled for the first time, for those who do not run the built one. */
  readonly probeScript?: URL | undefined;
}

export interface Worker {
  readonly id: string;
  /** Resolves with the reason once the engine has failed and everyone who waited has been told. */
  readonly failed: Promise<Error>;
  /**
   * Takes no more jobs; those held have `drainMs` to finish, and what is left then is told to come again. Idempotent.
   */
  close(options: { drainMs: number }): Promise<void>;
}

const overloaded: Ending = { type: 'failed', error: 'overloaded' };
/** How long the last frames of requests that were ended may take. */
const farewellMs = 1_000;
/** Cancellations are remembered this much longer than a job takes to come back from a worker that died. */
const rememberCancelledMs = 60_000;

/** Starts to take jobs of one model and to answer them with an engine. */
export async function createWorker(options: WorkerOptions): Promise<Worker> {
  const { id, config, entry, engine, backplane, logger, clock } = options;
  const { channel } = backplane;
  const held = new HeldRequests();
  const publisher = new Publisher({ channel, logger });
  const runner = createRunner(options, new EngineRuns(engine));

  const cancellations = await Cancellations.listen({
    channel,
    modelId: entry.id,
    cancelHeld: (requestId) => {
      const request = held.get(requestId);
      request?.end({ type: 'cancelled' });
      return request !== undefined;
    },
    clock,
    logger,
    rememberMs: rememberCancelledMs + 2 * config.lockMs,
  });
  const report = new EngineReport(engine);
  const board = await PresenceBoard.join({
    channel,
    describe: () => ({
      role: 'worker',
      id,
      model: entry.id,
      held: held.held,
      running: held.running,
      engine: report.latest,
    }),
  });
  const apis = new ApiProcesses(board, (apiId) => {
    held.endThoseOf(apiId, { type: 'silent' });
    orphans?.apiGone(apiId);
  });
  const orphans =
    options.database &&
    new OrphanLedger({
      client: options.database.client,
      isGone: (apiId) => apis.isGone(apiId),
      clock,
      logger,
    });

  let consumer: JobConsumer | undefined;
  let closing: Promise<void> | undefined;
  const close = ({ drainMs }: { drainMs: number }) => {
    closing ??= (async () => {
      const drained = setTimeout(() => held.endAll(() => overloaded, overloaded), drainMs);
      await consumer?.close({ drainMs: drainMs + farewellMs });
      clearTimeout(drained);
      apis.close();
      await runner.close();
      await orphans?.close();
      await board.leave();
      await cancellations.close();
    })();
    return closing;
  };
  const failed = new Promise<Error>((resolve) => {
    engine.onFailure((error) => {
      logger.error({ err: error }, 'the engine failed');
      held.endAll(endingAfterFailure, overloaded);
      void close({ drainMs: farewellMs }).then(() => resolve(error));
    });
  });
  try {
    consumer = await backplane.consume(
      entry.id,
      createJobHandler({
        workerId: id,
        held,
        publisher,
        cancellations,
        isGone: (apiId) => apis.isGone(apiId),
        orphans,
        run: runner.run,
        clock,
        logger,
      }),
      { concurrency: heldAtOnce(config.maxSequences), lockMs: config.lockMs },
    );
  } catch (error) {
    await close({ drainMs: 0 });
    throw error;
  }
  if (closing !== undefined) await consumer.close({ drainMs: farewellMs });
  return { id, failed, close };
}

/** What the engine was working on may be what broke it; what only waited is worth another try. */
function endingAfterFailure({ admitted }: HeldRequest): Ending {
  return admitted ? { type: 'failed', error: 'internal' } : overloaded;
}

/**
 * Jobs held at once: one for each of the engine's slots and a few that are tokenized ahead. More would keep them
 * from other workers of the model.
 */
function heldAtOnce(slots: number): number {
  return slots + Math.max(2, Math.ceil(slots / 8));
}

/** What answers the jobs of the model's task, until it is closed. */
interface Runner {
  readonly run: JobRunner;
  close(): Promise<void>;
}

function createRunner(options: WorkerOptions, runs: EngineRuns): Runner {
  const { entry, engine, tokenizer, probeScript, database } = options;
  const { manifest } = engine;
  const reservations = database && new Reservations({ database, limits: entry.limits ?? {} });
  const contextLength = servedContext(manifest, entry);
  if (manifest.kind === 'decoder' && entry.task === 'chat') {
    const defaultMaxTokens = entry.defaults.maxTokens;
    const format = toolFormatOf(manifest.chatTemplate);
    const grammars = new ReplyGrammars({ engine, manifest, tokenizer, format, probeScript });
    const chat = new ChatRunner({
      manifest,
      tokenizer,
      runs,
      grammars,
      reservations,
      contextLength,
      defaultMaxTokens,
    });
    return {
      run: (job, request) => (job.kind === 'chat' ? chat.run(job, request) : refuse(entry)),
      close: () => grammars.close(),
    };
  }
  if (manifest.kind === 'encoder' && entry.task === 'rerank') {
    const rerank = new RerankRunner({
      manifest,
      tokenizer,
      runs,
      reservations,
      contextLength,
      instruction: entry.instruction,
    });
    return {
      run: (job, request) => (job.kind === 'rerank' ? rerank.run(job, request) : refuse(entry)),
      close: async () => {},
    };
  }
  throw new Error(
    `${entry.id}: the catalogue says "${entry.task}", but the model is ${manifest.kind === 'decoder' ? 'a decoder' : 'an encoder'}`,
  );
}

async function refuse({ id, task }: CatalogueModel): Promise<never> {
  throw new ServiceError('invalidParameter', `model: ${id} only serves ${task}`);
}
