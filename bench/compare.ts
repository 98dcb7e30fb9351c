/**
 * Headrace beside llama.cpp's server, on the same machine, with the same client and requests, in turns:
 *
 *     npm run bench:compare -- --llama-server PATH --gguf-q8 FILE [--gguf-q4 FILE] [...]
 *
 * bench/README.md says how to build the server and make the files.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { Interruption, interruptible } from '../src/cli/interruption.js';
import { decimal, integer } from '../src/cli/option-values.js';
import { freePort } from './api/servers.js';
import { compare, formatComparison, type Run, undisturbed } from './compare/comparison.js';
import { headrace } from './compare/headrace-server.js';
import { llamaServer, quickestFlags } from './compare/llama-server.js';
import { waitUntilQuiet, watchMachine } from './compare/machine.js';
import type { ServerKind } from './compare/server.js';
import type { Send } from './load/exchange.js';
import { HttpClient } from './load/http.js';
import { measure } from './load/measure.js';
import { addRequestOptions, type RequestOptions } from './load/options.js';
import { buildSend, checkService, type Workload } from './load/service.js';

interface Options extends RequestOptions {
  readonly llamaServer: string;
  readonly ggufQ8: string;
  readonly ggufQ4?: string;
  readonly llamaFlags: string;
  readonly headrace: string;
  readonly model: string;
  readonly endTokens: string;
  readonly rounds: number;
  readonly requests?: number;
  readonly maxOthers: number;
  readonly attempts: number;
  readonly json: boolean;
}

const options = addRequestOptions(
  new Command('npm run bench:compare --')
    .requiredOption('--llama-server <path>', "llama.cpp's llama-server")
    .requiredOption('--gguf-q8 <file>', 'the model with Q8_0 weights')
    .option('--gguf-q4 <file>', 'the model with Q4_0 weights')
    .option('--llama-flags <flags>', 'how to run it', await quickestFlags())
    .option('--headrace <path>', 'the built command', 'dist/cli/main.js')
    .option('--model <id>', 'the model of the catalogue that is the same', 'SmolLM2-135M-Instruct')
    .option('--end-tokens <ids>', 'tokens with which it ends an answer', '2')
    .option('--rounds <number>', 'how often each server is started and measured', integer(1, 100), 3)
    .option(
      '--requests <number>',
      'requests with each number of clients (default: 4 per client, at least 8)',
      integer(1),
    )
    .option(
      '--max-others <percent>',
      'wait until other processes use no more of the machine',
      decimal(0, 100),
      100,
    )
    .option('--attempts <number>', 'how often to measure what they disturb nevertheless', integer(1), 3)
    .option('--json', 'print JSON instead of tables', false)
    .showHelpAfterError(),
)
  .parse()
  .opts<Options>();

/** Said to every server, because each has defaults of its own. */
const sampling = { temperature: 0.7, top_k: 40, top_p: 0.9, min_p: 0 };

const maxOthers = options.maxOthers / 100;
const folder = await mkdtemp(join(tmpdir(), 'headrace-compare-'));
const servers = listServers();
const runs: Run[] = [];
try {
  await interruptible(runAll);
} catch (error) {
  if (!(error instanceof Interruption)) console.error(`bench: ${(error as Error).message}`);
  process.exitCode = error instanceof Interruption ? error.exitCode : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
print();

function listServers(): ServerKind[] {
  const program = options.llamaServer;
  const flags = options.llamaFlags.split(/\s+/).filter((flag) => flag !== '');
  const { headrace: main, model, ggufQ8, ggufQ4 } = options;
  const endTokens = options.endTokens.split(',').map(Number);
  return [
    headrace({ main, model, endTokens, folder }),
    llamaServer({ name: 'llama.cpp Q8_0', program, gguf: ggufQ8, flags, folder }),
    ...(ggufQ4 === undefined
      ? []
      : [llamaServer({ name: 'llama.cpp Q4_0', program, gguf: ggufQ4, flags, folder })]),
  ];
}

/** Every round begins with another server, so that none always has the machine at its coolest or emptiest. */
async function runAll(signal: AbortSignal): Promise<void> {
  for (let round = 0; round < options.rounds; round++) {
    for (let turn = 0; turn < servers.length; turn++) {
      await runServer(servers[(round + turn) % servers.length]!, round, signal);
      signal.throwIfAborted();
    }
  }
}

async function runServer(kind: ServerKind, round: number, signal: AbortSignal): Promise<void> {
  const server = await kind.start(await freePort(), signal);
  const client = new HttpClient(server.url, server.key);
  try {
    const workload: Workload = {
      task: 'chat',
      model: kind.model,
      seed: options.seed,
      words: options.promptWords,
      maxTokens: options.maxTokens,
      documents: { min: 1, max: 1 },
      sharedWords: options.sharePrefix,
      ask: options.ask,
      extra: { ...sampling, ...kind.extra, ...options.extra },
    };
    await checkService(client, workload, signal);
    const send = buildSend(client, workload);
    let firstRun = 0;
    for (const clients of options.clients) {
      for (let attempt = 1; ; attempt++) {
        const others = await runOnce(server.pid, {
          send,
          clients,
          firstRun,
          round,
          name: kind.name,
          signal,
        });
        firstRun += 2;
        if (others <= maxOthers || attempt === options.attempts) break;
      }
    }
  } finally {
    client.close();
    await server.stop();
  }
}

/** Measures one number of clients, and returns what share of the machine others used meanwhile. */
async function runOnce(pid: number, run: RunOptions): Promise<number> {
  const { send, clients, firstRun, round, name, signal } = run;
  const shared = { send, clients: [clients], signal };
  if (maxOthers < 1) await waitUntilQuiet(pid, maxOthers, signal);
  const { requests, warmUp } = options;
  if (warmUp > 0) await measure({ ...shared, requests: warmUp * clients, warmUp: 0, firstRun });
  const watch = await watchMachine(pid);
  const [summary] = await measure({ ...shared, requests, warmUp: 0, firstRun: firstRun + 1 });
  // A part of a run would spoil the medians.
  signal.throwIfAborted();
  const { others, serverCpuMs } = await watch();
  const tokens = summary!.outputTokens * summary!.requests;
  report({
    server: name,
    round,
    others: numberOrNull(others),
    cpuMsPerToken: numberOrNull(serverCpuMs / tokens),
    summary: summary!,
  });
  return Number.isNaN(others) ? 0 : others;
}

function numberOrNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

interface RunOptions {
  readonly send: Send;
  readonly clients: number;
  readonly firstRun: number;
  readonly round: number;
  readonly name: string;
  readonly signal: AbortSignal;
}

function report(run: Run): void {
  runs.push(run);
  for (const [message, count] of Object.entries(run.summary.failures)) {
    console.error(`${run.server} failed ${count} times: ${message}`);
  }
  const { clients, outputTokensPerSecond, outputTokens, firstTokenMs, errors } = run.summary;
  const others = run.others === null ? '' : `, others ${(run.others * 100).toFixed(0)}% of the machine`;
  console.error(
    `round ${run.round + 1}, ${run.server}, ${clients} clients: ${outputTokensPerSecond.toFixed(1)} tok/s ` +
      `(${outputTokens} a request), first token ${firstTokenMs.p50} ms, ` +
      `${run.cpuMsPerToken?.toFixed(2) ?? '?'} CPU ms a token, ${errors} errors, ` +
      `load ${loadavg()[0]!.toFixed(1)}${others}`,
  );
}

function print(): void {
  const names = servers.map(({ name }) => name);
  const machine = { cores: availableParallelism(), processor: cpus()[0]?.model, load: loadavg()[0]! };
  const counted = undisturbed(runs, maxOthers);
  const comparisons = compare(names, counted);
  if (options.json) {
    console.log(
      JSON.stringify({ date: new Date().toISOString(), machine, options, comparisons, runs }, null, 2),
    );
    return;
  }
  console.log(
    `${new Date().toISOString()}, ${machine.cores} cores of ${machine.processor}, ${counted.length} of ${runs.length} runs counted`,
  );
  console.log(formatComparison(names, comparisons));
}
