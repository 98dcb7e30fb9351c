import { join } from 'node:path';
import type { Config } from '../platform/config.js';
import { ServiceClient } from './client/service-client.js';
import type { Terminal } from './client/terminal.js';
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
    return new ServiceClient(await findService(options, config, join(config.dataDir, 'dev-key')));
  };
  return {
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
  };
}
