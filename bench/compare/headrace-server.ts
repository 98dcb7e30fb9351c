import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ServerKind, startServer } from './server.js';

/**
 * `headrace serve` with everything in it, as it is started by default but for its data, which are in `folder`. The
 * environment's other settings hold, REDIS_URL among them.
 */
export function headrace(options: {
  /** The built command, `main.js`. */
  readonly main: string;
  readonly model: string;
  /** Tokens that end an answer. They are forbidden, so that answers have the length that was asked for. */
  readonly endTokens: readonly number[];
  readonly folder: string;
}): ServerKind {
  const { main, model, endTokens, folder } = options;
  const dataDir = join(folder, 'headrace');
  return {
    name: 'headrace',
    model,
    extra: { logit_bias: Object.fromEntries(endTokens.map((token) => [token, -100])) },
    start: async (port, signal) => {
      const { DATABASE_URL: _, ...environment } = process.env;
      const server = await startServer({
        command: [process.execPath, main, 'serve'],
        environment: { ...environment, HEADRACE_DATA_DIR: dataDir, HEADRACE_PORT: String(port) },
        port,
        healthPath: '/readyz',
        logFile: join(folder, 'headrace.log'),
        signal,
      });
      return { ...server, key: (await readFile(join(dataDir, 'dev-key'), 'utf8')).trim() };
    },
  };
}
