import type { Engine, EngineSettings } from '../../src/engine/engine.js';
import type { EngineCounters } from '../../src/engine/request.js';
import { drawRequest } from './draw-request.js';
import { SoakClient, type SoakOutcome } from './soak-client.js';
import { soakVocabulary } from './soak-vocabulary.js';

export interface SoakOptions {
  readonly seed: number;
  readonly requests: number;
  /** Requests after which memory has to stay as it is; fewer than `requests`. */
  readonly warmUp: number;
  readonly settings: EngineSettings;
}

export interface SoakReport {
  readonly outcome: SoakOutcome;
  /** Of the whole process, in bytes: at rest after the warm-up and at the end, and in between under load. */
  readonly resident: { readonly warm: number; readonly end: number; readonly underLoad: readonly number[] };
  /** At rest, at the end. */
  readonly counters: EngineCounters;
  /** What is not as it has to be; empty when all is well. */
  readonly problems: readonly string[];
}

/** Prompts and completions are no longer than this, so that many of them share the cache. */
const longest = { prompt: 512, completion: 64 };
/** Memory at the end over memory after the warm-up, at most. */
const maxGrowth = 1.1;
const samples = 10;

/** Serves many requests of all kinds, of which some are given up, and looks at what is left of them. */
export async function runSoak(engine: Engine, options: SoakOptions): Promise<SoakReport> {
  const { manifest } = engine;
  if (manifest.kind !== 'decoder') throw new Error('Only decoders are soaked');
  const { requests, warmUp, settings, seed } = options;
  const contextLength = Math.min(settings.contextLength, manifest.contextLength);
  const longestCompletion = Math.min(longest.completion, contextLength >> 2);
  const longestPrompt = Math.min(longest.prompt, contextLength - longestCompletion - 1);
  const draw = function* (first: number, end: number) {
    for (let index = first; index < end; index++) {
      yield drawRequest(index, { seed, manifest, longestPrompt, longestCompletion });
    }
  };
  engine.useVocabulary(soakVocabulary(manifest));
  const client = new SoakClient(engine);
  // More than there are slots, so that some always wait.
  const together = Math.ceil(1.5 * settings.maxSequences);

  await client.run(draw(0, warmUp), { together, onEnd: () => {} });
  await client.countersAtRest();
  const warm = process.memoryUsage.rss();
  const underLoad: number[] = [];
  const interval = Math.ceil((requests - warmUp) / (samples + 1));
  let ended = 0;
  await client.run(draw(warmUp, requests), {
    together,
    onEnd: () => {
      if (++ended % interval === 0) underLoad.push(process.memoryUsage.rss());
    },
  });
  const counters = await client.countersAtRest();
  const resident = { warm, end: process.memoryUsage.rss(), underLoad };
  const { outcome } = client;
  return { outcome, resident, counters, problems: problemsOf({ outcome, resident, counters }, options) };
}

function problemsOf(
  { outcome, resident, counters }: Omit<SoakReport, 'problems'>,
  { requests, settings }: SoakOptions,
): string[] {
  const { running, waiting, kvBytesUsed, kvPositions, prefixBytesUsed } = counters;
  const { waiting: inQueue, prefill, decode } = outcome.cancelled;
  const ended = outcome.finished + inQueue + prefill + decode;
  const growth = resident.end / resident.warm;
  const problems = [...new Set(outcome.failures)];
  if (ended !== requests) problems.push(`${requests} requests had ${ended} ends`);
  for (const [name, value] of Object.entries({ running, waiting, kvBytesUsed, kvPositions })) {
    if (value !== 0) problems.push(`${name} is ${value} at rest`);
  }
  if (prefixBytesUsed > settings.prefixBytes) problems.push(`prefixBytesUsed is ${prefixBytesUsed}`);
  if (growth > maxGrowth) problems.push(`memory grew by ${Math.round(100 * (growth - 1))}%`);
  return problems;
}
