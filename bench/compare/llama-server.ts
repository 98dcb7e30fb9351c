import { join } from 'node:path';
import { type ServerKind, startServer } from './server.js';

/** llama.cpp's server on one GGUF file, with the `flags` given. */
export function llamaServer(options: {
  readonly name: string;
  /** The program, `llama-server`. */
  readonly program: string;
  readonly gguf: string;
  readonly flags: readonly string[];
  readonly folder: string;
}): ServerKind {
  const { name, program, gguf, flags, folder } = options;
  return {
    name,
    model: 'default',
    extra: { ignore_eos: true },
    start: (port, signal) =>
      startServer({
        command: [program, '-m', gguf, '--host', '127.0.0.1', '--port', String(port), ...flags],
        environment: process.env,
        port,
        healthPath: '/health',
        logFile: join(folder, `${name}.log`),
        signal,
      }),
  };
}
