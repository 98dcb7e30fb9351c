import { availableParallelism } from 'node:os';
import type { Config } from '../platform/config.js';
import type { Database } from '../platform/database/database.js';
import { developmentKeyPath } from '../platform/development-key.js';
import { createLogger } from '../platform/logger.js';
import { ServiceClient } from './client/service-client.js';
import type { Terminal } from './client/terminal.js';
import { NegativeResult } from './command-line.js';
import { interruptible } from './interruption.js';
import type { Actions, ServiceOptions } from './program.js';
import { findService } from './service-address.js';

/**
 * What stands behind each command. Only the modules of the command that runs are loaded: a client starts without
 * those of a server.
 */
export function createActions({
  terminal,
  loadConfig,
}: {
  terminal: Terminal;
  /** Called once a command runs: help needs no valid configuration. */
  loadConfig: () => Config;
}): Actions {
  const connect = async (options: ServiceOptions) => {
    const config = loadConfig();
    return new ServiceClient(await findService(options, config, developmentKeyPath(config.dataDir)));
  };
  /** A server's log, of which a command shows only what goes wrong. */
  const commandLogger = ({ logLevel }: Config) =>
    createLogger({ level: logLevel === 'info' ? 'warn' : logLevel, name: 'headrace' });

  const onDatabase = async (work: (database: Database) => Promise<void>) => {
    const { withDatabase } = await import('./database-server.js');
    const config = loadConfig();
    // An interruption waits until the database is closed; it is a moment.
    await interruptible(() => withDatabase({ config, logger: commandLogger(config) }, work));
  };

  return {
    serve: async () => {
      const { serve } = await import('./serve.js');
      await serve({ config: loadConfig(), terminal });
    },
    api: async () => {
      const { runApiProcess } = await import('../api/api-process.js');
      const config = loadConfig();
      await runApiProcess({ config, logger: createLogger({ level: config.logLevel, name: 'api' }) });
      await untilProcessEnds();
    },
    worker: async ({ model }) => {
      const { runWorkerProcess } = await import('../worker/worker-process.js');
      const config = loadConfig();
      const logger = createLogger({ level: config.logLevel, name: 'worker' });
      await runWorkerProcess({ config, modelId: model, logger });
      await untilProcessEnds();
    },
    migrate: async () => {
      const { runMigrate } = await import('./commands/migrate.js');
      const config = loadConfig();
      await interruptible(() => runMigrate({ config, logger: commandLogger(config), terminal }));
    },

    chat: async (message, options) => {
      const { chat } = await import('./client/chat.js');
      const client = await connect(options);
      await interruptible((signal) => chat({ ...options, message }, { client, terminal, signal }));
    },
    rerank: async (options) => {
      const { rerank } = await import('./client/rerank.js');
      const { formatTable } = await import('./table.js');
      const client = await connect(options);
      await interruptible((signal) => rerank(options, { client, terminal, formatTable, signal }));
    },

    createKey: async (name, { account, expiresIn, json }) => {
      const { runCreateKey } = await import('./commands/keys.js');
      await onDatabase((database) =>
        runCreateKey({ name, account, expiresInMs: expiresIn }, { database, terminal, json }),
      );
    },
    listKeys: async ({ json }) => {
      const { runListKeys } = await import('./commands/keys.js');
      await onDatabase((database) => runListKeys({ database, terminal, json }));
    },
    revokeKey: async (id, { json }) => {
      const { runRevokeKey } = await import('./commands/keys.js');
      await onDatabase((database) => runRevokeKey(id, { database, terminal, json }));
    },

    listModels: async ({ json }) => {
      const { runListModels } = await import('./commands/models.js');
      await runListModels({ config: loadConfig(), terminal, json });
    },
    pullModels: async (ids, { json }) => {
      const { runPullModels } = await import('./commands/models.js');
      await interruptible((signal) => runPullModels(ids, { config: loadConfig(), terminal, json, signal }));
    },
    compileModels: async (ids, { json }) => {
      const { runCompileModels } = await import('./commands/models.js');
      await interruptible((signal) =>
        runCompileModels(ids, { config: loadConfig(), terminal, json, signal }),
      );
    },
    checkModel: async (source, { cases, weights }) => {
      const { modelCheck } = await import('./commands/model-check.js');
      const options = { source, cases, weights, threads: availableParallelism() };
      const exitCode = await interruptible((signal) =>
        modelCheck(options, { stdout: terminal.stdout, signal }),
      );
      if (exitCode !== 0) throw new NegativeResult();
    },
  };
}

/** A server process exits by itself, once it was told to and has closed everything. */
async function untilProcessEnds(): Promise<never> {
  return await new Promise<never>(() => {});
}
