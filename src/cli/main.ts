#!/usr/bin/env node
import { loadConfig } from '../platform/config.js';
import { packageVersion } from '../platform/package-version.js';
import { createActions } from './actions.js';
import { runCommandLine } from './command-line.js';

loadEnvironmentFile();

const terminal = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr };
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // Whoever read it has seen enough: `headrace chat ... | head -1`.
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}

const exitCode = await runCommandLine(process.argv.slice(2), {
  actions: createActions({ terminal, loadConfig }),
  terminal,
  version: packageVersion(),
  isDebug,
});
await new Promise((written) => process.stdout.write('', written));
// Prisma's engine, for one, leaves a timer of ten seconds behind.
process.exit(exitCode);

/** Variables of .env in the working folder; those that are set already win. */
function loadEnvironmentFile(): void {
  try {
    process.loadEnvFile('.env');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return;
    process.stderr.write(`headrace: .env cannot be read: ${message}\n`);
    process.exit(1);
  }
}

/** Asked when something has failed, which may have been the configuration itself. */
function isDebug(): boolean {
  try {
    return ['debug', 'trace'].includes(loadConfig().logLevel);
  } catch {
    return false;
  }
}
