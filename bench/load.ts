/**
 * A load client for any server that speaks the chat-completion or the rerank API:
 *
 *     npm run bench -- --url URL --model ID [--clients 1,8,32] [...]
 *
 * bench/README.md explains what is measured and how.
 */
import { availableParallelism, loadavg } from 'node:os';
import { Command, Option } from 'commander';
import { Interruption, interruptible } from '../src/cli/interruption.js';
import { decimal, integer, serviceUrl } from '../src/cli/option-values.js';
import { HttpClient } from './load/http.js';
import { measure } from './load/measure.js';
import { addRequestOptions, type RequestOptions, range } from './load/options.js';
import type { Range } from './load/range.js';
import { formatReport } from './load/report.js';
import { buildSend, checkService, type Workload } from './load/service.js';
import type { Summary } from './load/summary.js';

interface Options extends RequestOptions {
  readonly url: string;
  readonly key?: string;
  readonly model: string;
  readonly task: Workload['task'];
  readonly documents: Range;
  readonly requests?: number;
  readonly seconds?: number;
  readonly ignoreEos: boolean;
  readonly json: boolean;
}

const command = addRequestOptions(
  new Command('npm run bench --')
    .requiredOption('--url <url>', 'the server, with or without /v1', serviceUrl)
    .requiredOption('--model <id>', 'the model to ask')
    .addOption(new Option('--key <key>', 'the API key to send, if any').env('HEADRACE_KEY'))
    .addOption(new Option('--task <task>', 'what to ask for').choices(['chat', 'rerank']).default('chat')),
)
  .addOption(range('--documents <range>', 'documents of a rerank request: 32 or 8-100', 32))
  .addOption(
    new Option(
      '--requests <number>',
      'requests with each number of clients (default: 4 per client, at least 8)',
    )
      .argParser(integer(1, 1_000_000))
      .conflicts('seconds'),
  )
  .option('--seconds <number>', 'how long to go on with each number of clients', decimal(0.1, 86_400))
  .option('--no-ignore-eos', 'do not ask servers that can to write on after the end of an answer')
  .option('--json', 'print JSON instead of a table', false)
  .showHelpAfterError();

const options = command.parse().opts<Options>();
const client = new HttpClient(options.url, options.key);
const workload: Workload = {
  task: options.task,
  model: options.model,
  seed: options.seed,
  words: options.promptWords,
  maxTokens: options.maxTokens,
  documents: options.documents,
  sharedWords: options.sharePrefix,
  ask: options.ask,
  extra: { ...(options.ignoreEos ? { ignore_eos: true } : {}), ...options.extra },
};
const loadBefore = loadavg()[0]!;
process.exitCode = await run();
client.close();

async function run(): Promise<number> {
  try {
    return await interruptible(async (signal) => {
      await checkService(client, workload, signal);
      const summaries = await measure({
        ...options,
        send: buildSend(client, workload),
        signal,
        onMeasured: ({ clients, seconds }) => console.error(`${clients} clients: measured in ${seconds} s`),
      });
      print(summaries, signal.aborted);
      if (signal.aborted) return (signal.reason as Interruption).exitCode;
      return summaries.every(({ requests }) => requests > 0) ? 0 : 1;
    });
  } catch (error) {
    if (error instanceof Interruption) return error.exitCode;
    console.error(`bench: ${(error as Error).message}`);
    return 1;
  }
}

function print(summaries: readonly Summary[], interrupted: boolean): void {
  const machine = { cores: availableParallelism(), loadBefore };
  if (options.json) {
    console.log(
      JSON.stringify({ url: options.url, ...workload, machine, interrupted, runs: summaries }, null, 2),
    );
    return;
  }
  console.log(`${machine.cores} cores, load before: ${loadBefore.toFixed(2)}`);
  if (interrupted) console.log('Interrupted: the last row, if any, is of what had been answered until then.');
  if (summaries.length > 0) console.log(formatReport(options.task, summaries));
}
