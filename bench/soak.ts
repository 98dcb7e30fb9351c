/**
 * A long soak of the engine, in its thread as a worker has it, and a client beside it that is little more than a loop:
 *
 *     npm run bench:soak -- FOLDER [--requests N] [--seed S] [--slots N] [--kv-mib N] [--threads N] [--json]
 *
 * Exits with 1 when memory did not stay flat, or anything is left of requests that have ended.
 */
import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import { integer } from '../src/cli/option-values.js';
import type { EngineSettings } from '../src/engine/engine.js';
import { startEngineThread } from '../src/engine/engine-thread.js';
import { chunkTokens, maxBatchTokens } from '../src/worker/engine-settings.js';
import { runSoak, type SoakReport } from './soak/run-soak.js';

interface Options {
  readonly requests: number;
  readonly seed: number;
  readonly slots: number;
  readonly kvMib: number;
  readonly threads: number;
  readonly json: boolean;
}

/** Requests after which memory has to stay as it is. */
const warmUp = 200;
const mebibyte = 2 ** 20;

const command = new Command('npm run bench:soak --')
  .argument('<folder>', 'a compiled chat model')
  .option('--requests <number>', 'how many requests', integer(warmUp + 1, 10_000_000), 2_000)
  .option('--seed <number>', 'what requests and cancellations are drawn from', integer(0, 2 ** 32), 1)
  .option('--slots <number>', 'sequences decoded together', integer(3, 1_024), 32)
  .option('--kv-mib <number>', 'memory of the KV cache, in MiB', integer(1, 1_048_576), 128)
  .option('--threads <number>', 'threads of ONNX Runtime', integer(1, 1_024), availableParallelism())
  .option('--json', 'print JSON instead of tables', false)
  .showHelpAfterError()
  .parse();
const options = command.opts<Options>();
const kvBytes = options.kvMib * mebibyte;
const settings: EngineSettings = {
  folder: command.args[0]!,
  maxSequences: options.slots,
  contextLength: Number.MAX_SAFE_INTEGER,
  kvBytes,
  prefixBytes: Math.floor(kvBytes / 8),
  maxBatchTokens: maxBatchTokens.decoder,
  chunkTokens,
  threads: options.threads,
};

const engine = await startEngineThread(settings, { signal: new AbortController().signal });
const started = performance.now();
const report = await runSoak(engine, { ...options, warmUp, settings });
const seconds = (performance.now() - started) / 1000;
await engine.close();
if (options.json) console.log(JSON.stringify({ ...report, seconds }, null, 2));
else print(report, seconds);
process.exitCode = report.problems.length > 0 ? 1 : 0;

function print({ outcome, resident, counters, problems }: SoakReport, seconds: number): void {
  const { waiting, prefill, decode } = outcome.cancelled;
  const mib = (bytes: number) => `${Math.round(bytes / mebibyte)} MiB`;
  console.log(
    `${options.requests} requests in ${Math.round(seconds)} s: ${outcome.finished} finished, ` +
      `${waiting} cancelled while they waited, ${prefill} in prefill, ${decode} in decode; ` +
      `${outcome.choicesCancelled} single choices cancelled`,
  );
  console.log(
    `resident: ${mib(resident.warm)} after ${warmUp} requests, ${mib(resident.end)} at the end ` +
      `(${(100 * (resident.end / resident.warm - 1)).toFixed(1)}%); under load ${resident.underLoad.map(mib).join(', ')}`,
  );
  console.table(counters);
  console.log(problems.length > 0 ? `FAILED\n${problems.join('\n')}` : 'all is well');
}
