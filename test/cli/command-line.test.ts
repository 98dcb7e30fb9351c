import { describe, expect, it } from 'vitest';
import { NegativeResult, runCommandLine } from '../../src/cli/command-line.js';
import { Interruption } from '../../src/cli/interruption.js';
import type { Actions } from '../../src/cli/program.js';
import { TestTerminal } from './client/local-service.js';

type Call = [name: string, ...args: unknown[]];

/** Runs a command line whose actions only note that they were called, or throw `failure`. */
async function run(
  line: string[],
  { failure, isDebug = false }: { failure?: Error; isDebug?: boolean } = {},
) {
  const calls: Call[] = [];
  const actions = new Proxy({} as Actions, {
    get:
      (_, name) =>
      async (...args: unknown[]) => {
        calls.push([String(name), ...args]);
        if (failure !== undefined) throw failure;
      },
  });
  const terminal = new TestTerminal();
  const exitCode = await runCommandLine(line, {
    actions,
    terminal,
    version: '1.2.3',
    isDebug: () => isDebug,
  });
  return { exitCode, calls, output: terminal.output, errors: terminal.errors };
}

describe('the command line', () => {
  it.each<[string[], Call]>([
    [['serve'], ['serve']],
    [['api'], ['api']],
    [['migrate'], ['migrate']],
    [
      ['worker', '--model', 'm'],
      ['worker', { model: 'm' }],
    ],
    [
      ['chat', 'Hello'],
      ['chat', 'Hello', { stream: true, json: false }],
    ],
    [
      [
        ...[
          'chat',
          '-',
          '--system',
          'Be brief.',
          '--model',
          'm',
          '--max-tokens',
          '9',
          '--temperature',
          '0.5',
        ],
        ...['--seed', '-4', '--no-stream', '--url', 'https://example.org/v1/', '--key', 'k', '--json'],
      ],
      [
        'chat',
        '-',
        {
          system: 'Be brief.',
          model: 'm',
          maxTokens: 9,
          temperature: 0.5,
          seed: -4,
          stream: false,
          url: 'https://example.org',
          key: 'k',
          json: true,
        },
      ],
    ],
    [
      ['rerank', '--query', 'Q', '--documents', 'f.txt', '--top-n', '3', '--return-documents'],
      ['rerank', { query: 'Q', documents: 'f.txt', topN: 3, returnDocuments: true, json: false }],
    ],
    [
      ['keys', 'create'],
      ['createKey', 'default', { account: 'development', json: false }],
    ],
    [
      ['keys', 'create', 'laptop', '--account', 'team', '--expires-in', '90d', '--json'],
      ['createKey', 'laptop', { account: 'team', expiresIn: 90 * 86_400_000, json: true }],
    ],
    [
      ['keys', 'list', '--json'],
      ['listKeys', { json: true }],
    ],
    [
      ['keys', 'revoke', 'sk-abc'],
      ['revokeKey', 'sk-abc', { json: false }],
    ],
    [
      ['models', 'list'],
      ['listModels', { json: false }],
    ],
    [
      ['models', 'pull'],
      ['pullModels', [], { json: false }],
    ],
    [
      ['models', 'compile', 'a', 'b'],
      ['compileModels', ['a', 'b'], { json: false }],
    ],
    [
      ['model', 'check', 'folder', '--cases', 'c.json', '--weights', 'int8'],
      ['checkModel', 'folder', { cases: 'c.json', weights: 'int8' }],
    ],
  ])('%j is understood', async (line, [name, ...args]) => {
    const { exitCode, calls } = await run(line);

    expect(calls.map(([called, ...given]) => [called, ...given.slice(0, args.length)])).toEqual([
      [name, ...args],
    ]);
    expect(exitCode).toBe(0);
  });

  it.each([
    ['no command', []],
    ['an unknown command', ['dance']],
    ['an unknown option', ['chat', 'Hello', '--loud']],
    ['a missing argument', ['chat']],
    ['one argument too many', ['chat', 'Hello', 'there']],
    ['a missing option', ['worker']],
    ['an option without its value', ['worker', '--model']],
    ['a number that is none', ['chat', 'Hello', '--max-tokens', 'many']],
    ['a number that is not whole', ['chat', 'Hello', '--max-tokens', '1.5']],
    ['a number out of range', ['chat', 'Hello', '--temperature', '2.1']],
    ['an empty number', ['chat', 'Hello', '--temperature', '']],
    ['a URL of another kind', ['chat', 'Hello', '--url', 'localhost:8700']],
    ['a duration without unit', ['keys', 'create', '--expires-in', '90']],
    ['a weights format that does not exist', ['model', 'check', 'f', '--cases', 'c', '--weights', 'int3']],
    ['a group without its command', ['keys']],
    ['an unknown command of a group', ['models', 'dance']],
  ])('%s gives usage on standard error and exit code 2', async (_, line) => {
    const { exitCode, calls, output, errors } = await run(line);

    expect(errors).toContain('Usage: headrace');
    expect(output).toBe('');
    expect(calls).toEqual([]);
    expect(exitCode).toBe(2);
  });

  it('--help prints usage on standard output', async () => {
    const { exitCode, output, errors } = await run(['rerank', '--help']);

    expect(output).toContain('Usage: headrace rerank');
    expect(errors).toBe('');
    expect(exitCode).toBe(0);
  });

  it('--version prints the version', async () => {
    expect(await run(['--version'])).toMatchObject({ output: '1.2.3\n', exitCode: 0 });
  });

  it('an error is one line on standard error and exit code 1', async () => {
    const failure = new Error('The database cannot be reached.', { cause: new Error('inner') });

    expect(await run(['migrate'], { failure })).toMatchObject({
      errors: 'headrace: The database cannot be reached.\n',
      output: '',
      exitCode: 1,
    });
  });

  it('an error has its stack and its cause when debugging', async () => {
    const failure = new Error('outer', { cause: new Error('inner') });

    const { errors } = await run(['migrate'], { failure, isDebug: true });

    expect(errors).toMatch(/outer\n\s+at .*inner\n\s+at /s);
  });

  it('an interrupted command says nothing and exits as shells expect', async () => {
    expect(await run(['chat', 'Hello'], { failure: new Interruption('SIGINT') })).toMatchObject({
      errors: '',
      exitCode: 130,
    });
  });

  it('a negative result speaks for itself and exits with 1', async () => {
    const failure = new NegativeResult();

    expect(await run(['model', 'check', 'f', '--cases', 'c'], { failure })).toMatchObject({
      errors: '',
      exitCode: 1,
    });
  });
});
