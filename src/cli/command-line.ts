import { inspect } from 'node:util';
import { CommanderError } from 'commander';
import type { Terminal } from './client/terminal.js';
import { Interruption } from './interruption.js';
import { type Actions, buildProgram } from './program.js';

/** The command did its work and the answer is no; what it printed says why. */
export class NegativeResult extends Error {
  override readonly name = 'NegativeResult';
}

/**
 * Runs one command line to its end and returns the exit code: 0, 1 when it failed, 2 when the arguments are wrong,
 * or 128 and the signal's number when it was interrupted. An error is one line on standard error, or all that is
 * known of it when `isDebug`.
 */
export async function runCommandLine(
  args: readonly string[],
  options: { actions: Actions; terminal: Terminal; version: string; isDebug: () => boolean },
): Promise<number> {
  const { stdout, stderr } = options.terminal;
  const program = buildProgram(options.actions, {
    version: options.version,
    output: {
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
    },
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof Interruption) return error.exitCode;
    if (error instanceof NegativeResult) return 1;
    stderr.write(`headrace: ${options.isDebug() ? inspect(error) : messageOf(error)}\n`);
    return 1;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return messageOf(error.errors[0]);
  return error instanceof Error && error.message !== '' ? error.message : String(error);
}
