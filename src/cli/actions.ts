import { availableParallelism, userInfo } from 'node:os';
import type { Config } from '../platform/config.js';
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

  const administer: Actions['administer'] = async ({ json }, work) => {
    const { withDatabase } = await import('./database-server.js');
    const { openBackplane } = await import('../platform/backplane/open-backplane.js');
    const config = loadConfig();
    const logger = commandLogger(config);
    const actor = `cli:${userInfo().username}`;
    const loadCatalogue = async () => {
      const catalogueFile = await import('../models/catalogue-file.js');
      return catalogueFile.loadCatalogue(config.modelsFile);
    };
    // An interruption waits until the database is closed; it is a moment.
    await interruptible(() =>
      withDatabase({ config, logger }, async (database, databaseUrl) => {
        const backplane = await openBackplane({ redisUrl: config.redisUrl, databaseUrl, logger });
        try {
          await work({ database, backplane, loadCatalogue, actor, logger, terminal, json });
        } finally {
          await backplane.close();
        }
      }),
    );
  };

  return {
    administer,
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
      await administer({ json }, (desk) => runCreateKey({ name, account, expiresInMs: expiresIn }, desk));
    },
    listKeys: async ({ json }) => {
      const { runListKeys } = await import('./commands/keys.js');
      await administer({ json }, runListKeys);
    },
    revokeKey: async (id, { json }) => {
      const { runRevokeKey } = await import('./commands/keys.js');
      await administer({ json }, (desk) => runRevokeKey(id, desk));
    },

    listModels: async ({ json }) => {
      const { runListModels } = await import('./commands/models.js');
      await runListModels({ config: loadConfig(), terminal, json });
    },
    pullModels: async (ids, { json }) => {
      const { runPullModels } = await import('./commands/models.js');
      await interruptible((signal) => runPullModels(ids, { config: loadConfig(), terminal, json, signal }));
    },
    compileModels: async (ids, { weights, json }) => {
      const { runCompileModels } = await import('./commands/models.js');
      await interruptible((signal) =>
        runCompileModels({ ids, weights }, { config: loadConfig(), terminal, json, signal }),
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
    evaluateModel: async (source, { text, formats, json }) => {
      const { modelEvaluate } = await import('./commands/model-evaluate.js');
      const options = { source, text, formats, json, threads: availableParallelism() };
      await interruptible((signal) => modelEvaluate(options, { config: loadConfig(), terminal, signal }));
    },
  };
}

/** A server process exits by itself, once it was told to and has closed everything. */
async function untilProcessEnds(): Promise<never> {
  return await new Promise<never>(() => {});
}
