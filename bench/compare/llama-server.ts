import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type ServerKind, startServer } from './server.js';

/**
 * How llama.cpp's server was the quickest on a processor like this one, as bench/README.md has it measured: with its
 * flash attention where there is no AMX, and without it where there is.
 */
export async function quickestFlags(): Promise<string> {
  const processor = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
  const flash = processor.includes('amx_int8') ? 'off' : 'on';
  return `-t ${availableParallelism()} -np 32 -c 16384 -fa ${flash} --cache-ram 0`;
}

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
