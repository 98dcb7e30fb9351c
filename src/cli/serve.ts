import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startApi } from '../api/start-api.js';
import type { Catalogue, CatalogueModel } from '../models/catalogue.js';
import { loadCatalogue } from '../models/catalogue-file.js';
import { abortable } from '../platform/abortable.js';
import { openBackplane } from '../platform/backplane/open-backplane.js';
import type { Config } from '../platform/config.js';
import { type Database, openDatabase } from '../platform/database/database.js';
import { ensureDevelopmentKey } from '../platform/development-key.js';
import { hugePageVariables } from '../platform/huge-pages.js';
import { createLogger, type Logger } from '../platform/logger.js';
import { LiveCatalogue } from '../platform/model-registry/live-catalogue.js';
import { initialState, isServed } from '../platform/model-registry/model-state.js';
import { PrismaModelStates } from '../platform/model-registry/model-states.js';
import type { Terminal } from './client/terminal.js';
import { createLogLines } from './console-log.js';
import { migrateDatabase, openDatabaseServer } from './database-server.js';
import { firstRequest } from './first-request.js';
import { Interruption, interruptible } from './interruption.js';
import { checkListenAddress, localUrl } from './listen-address.js';
import { ModelWorkers } from './model-workers.js';
import { prepareModels } from './prepare-models.js';
import { Supervisor } from './supervisor.js';

/**
 * The whole service stops within five seconds, and stopping Postgres may take half of that: requests have this long
 * to end, and everything else this long to leave, before it is cut off.
 */
const drainMs = 500;
const leaveMs = 2_000;

const workerEntry = fileURLToPath(new URL('../worker/main.js', import.meta.url));

interface ServeContext {
  readonly config: Config;
  /** Of the API, the workers and the database. */
  readonly logLevel: string;
  readonly logger: Logger;
  readonly terminal: Terminal;
  readonly supervisor: Supervisor;
  readonly signal: AbortSignal;
}

/**
 * `headrace serve`: the whole service on one machine, until it is interrupted.
 * @throws Error when it cannot be started, saying what to do; nothing is left running then.
 */
export async function serve({ config, terminal }: { config: Config; terminal: Terminal }): Promise<void> {
  const lines = createLogLines(terminal);
  const supervisor = new Supervisor({
    logger: createLogger({ level: config.logLevel, name: 'serve' }, lines),
    onLine: (line) => lines.write(line),
  });
  // A person wants to see what goes wrong and not every request; a log file is there for both.
  const logLevel = terminal.stderr.isTTY && config.logLevel === 'info' ? 'warn' : config.logLevel;
  const logger = createLogger({ level: logLevel, name: 'serve' }, lines);
  // However this process ends, at once included, its workers do not outlive it.
  const killWorkers = () => supervisor.kill();
  process.on('exit', killWorkers);
  try {
    await interruptible((signal) => run({ config, logLevel, terminal, logger, supervisor, signal }));
  } catch (error) {
    // This is how a service ends.
    if (!(error instanceof Interruption)) throw error;
  } finally {
    process.off('exit', killWorkers);
  }
}

async function run(context: ServeContext): Promise<void> {
  const { config, terminal, logger, signal } = context;
  // What fails quickly comes first.
  const catalogue = await loadCatalogue(config.modelsFile);
  await checkListenAddress(config);
  await checkRedis(config);
  signal.throwIfAborted();

  const server = await openDatabaseServer({ config, logger });
  try {
    await migrateDatabase(server.url, config);
    const database = openDatabase(server.url, { logger, maxConnections: 1 });
    try {
      const { path: keyPath } = await ensureDevelopmentKey({ database, dataDir: config.dataDir });
      const served = await servedModels(database, catalogue);
      await prepareModels({ config, models: served, terminal, signal });
      await runProcesses({ catalogue, served, database, databaseUrl: server.url, keyPath }, context);
    } finally {
      await database.close();
    }
  } finally {
    await server.stop();
  }
}

interface Installation {
  readonly catalogue: Catalogue;
  /** The models that take requests at the start. */
  readonly served: readonly CatalogueModel[];
  readonly database: Database;
  readonly databaseUrl: string;
  readonly keyPath: string;
}

async function runProcesses(installation: Installation, context: ServeContext): Promise<void> {
  const { keyPath, catalogue, served } = installation;
  const { config, terminal, signal } = context;
  const processes = new Processes(context);
  try {
    const { port } = await abortable(processes.start(installation), signal);
    const models = served.length > 0 ? served : catalogue.models;
    announce(terminal, {
      url: localUrl({ host: config.host, port }),
      keyPath,
      catalogue: { models: [...models] },
    });
    await abortable(new Promise<never>(() => {}), signal);
  } finally {
    // Behind the ^C that a terminal shows.
    if (signal.aborted) terminal.stdout.write(`${terminal.stdout.isTTY ? '\n' : ''}Stopping…\n`);
    await processes.stop();
  }
}

/** The API in this process and a worker for each model that is served in a process of its own. */
class Processes {
  readonly #context: ServeContext;
  #api: ReturnType<typeof startApi> | undefined;
  #models: LiveCatalogue | undefined;

  constructor(context: ServeContext) {
    this.#context = context;
  }

  /** Resolves when every one of them is ready. */
  async start({ catalogue, served, database, databaseUrl }: Installation): Promise<{ port: number }> {
    const { config, logLevel, logger, supervisor } = this.#context;
    this.#api = startApi({ config, databaseUrl, catalogue, logger, timing: { drainMs } });
    const workers = new ModelWorkers({
      supervisor,
      logger,
      specificationOf: (id) => ({
        name: `the worker of ${id}`,
        entry: workerEntry,
        args: ['--model', id],
        env: {
          ...hugePageVariables(process.env),
          DATABASE_URL: databaseUrl,
          HEADRACE_LOG_LEVEL: logLevel,
        },
      }),
    });
    const [api] = await Promise.all([this.#api, workers.start(served)]);
    const store = new PrismaModelStates(database.client);
    const { channel } = api.backplane;
    const models = await LiveCatalogue.open({ catalogue, store, channel, logger });
    models.onRefresh(() => void workers.follow(models.served(), api));
    this.#models = models;
    return api;
  }

  /** Takes no longer than `leaveMs`. */
  async stop(): Promise<void> {
    const { supervisor } = this.#context;
    await this.#models?.close();
    await Promise.all([this.#closeApi(), supervisor.stop({ graceMs: leaveMs })]);
  }

  async #closeApi(): Promise<void> {
    // One that could not be started has nothing to close.
    const api = await this.#api?.catch(() => undefined);
    const late = delay(leaveMs, 'late', { ref: false });
    if ((await Promise.race([api?.close(), late])) !== 'late') return;
    this.#context.logger.warn(`the API did not close within ${leaveMs / 1000} s`);
  }
}

async function checkRedis({ redisUrl }: Config): Promise<void> {
  if (redisUrl === undefined) return;
  const logger = createLogger({ level: 'silent', name: 'serve' });
  try {
    const backplane = await openBackplane({ redisUrl, databaseUrl: '', logger });
    await backplane.close();
  } catch (error) {
    const { message } = error as Error;
    const advice = 'Start that server, correct the variable, or leave it out to do without Redis.';
    throw new Error(`${message}. ${advice}`, { cause: error });
  }
}

async function servedModels(database: Database, { models }: Catalogue): Promise<CatalogueModel[]> {
  const states = await new PrismaModelStates(database.client).load();
  const now = new Date();
  return models.filter(({ id }) => isServed(states.get(id) ?? initialState, now));
}

function announce({ stdout }: Terminal, where: { url: string; keyPath: string; catalogue: Catalogue }): void {
  stdout.write(
    [
      '',
      `Headrace is ready at ${where.url}; Ctrl-C stops it.`,
      `The API key is in ${where.keyPath}. Try:`,
      '',
      `  ${firstRequest(where)}`,
      '',
      '',
    ].join('\n'),
  );
}
