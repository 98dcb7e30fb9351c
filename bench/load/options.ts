import { type Command, InvalidArgumentError, Option } from 'commander';
import { integer } from '../../src/cli/option-values.js';
import { parseRange, type Range } from './range.js';

/** What the benches that send requests have in common. */
export interface RequestOptions {
  readonly clients: readonly number[];
  readonly promptWords: Range;
  readonly maxTokens: Range;
  readonly sharePrefix?: number;
  readonly ask?: string;
  readonly seed: number;
  readonly warmUp: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

export function addRequestOptions(command: Command): Command {
  return command
    .option('--clients <numbers>', 'numbers of clients, each measured for itself', parseClients, [1, 8, 32])
    .addOption(range('--prompt-words <range>', 'words of a prompt, or of each document: 100 or 50-200', 100))
    .addOption(range('--max-tokens <range>', 'tokens of an answer: 64 or 16-128', 64))
    .option('--share-prefix <words>', 'words of a system prompt that all requests share', integer(1, 100_000))
    .option('--ask <text>', 'what to do with the words of a prompt, said before them')
    .option('--seed <number>', 'what prompts and lengths are drawn from', integer(0), 1)
    .option('--warm-up <number>', 'requests of each client before it is measured', integer(0, 1000), 1)
    .option('--extra <json>', 'fields to send with every request, as a JSON object', parseObject, {});
}

export function range(flags: string, description: string, fallback: number): Option {
  return new Option(flags, description)
    .argParser(parseRange)
    .default({ min: fallback, max: fallback }, String(fallback));
}

export function parseClients(text: string): number[] {
  return text.split(',').map((part) => integer(1, 10_000)(part.trim()));
}

export function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Said below, together with what is JSON but no object.
  }
  throw new InvalidArgumentError('It must be a JSON object such as {"temperature":0}.');
}
