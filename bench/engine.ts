/**
 * The engine alone, without thread, queue or HTTP, on a compiled model:
 *
 *     npm run bench:engine -- FOLDER [--threads N] [--no-spinning] [--seconds S] [--json]
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DecoderEngine } from '../src/engine/decoder-engine.js';
import { EncoderEngine } from '../src/engine/encoder-engine.js';
import { OnnxDecoderRunner } from '../src/engine/onnx-decoder-runner.js';
import { OnnxEncoderRunner } from '../src/engine/onnx-encoder-runner.js';
import { OnnxSession } from '../src/engine/onnx-session.js';
import type { GenerateRequest, Sampling } from '../src/engine/request.js';
import {
  compiledFiles,
  type DecoderManifest,
  type EncoderManifest,
  readManifest,
} from '../src/models/manifest.js';
import { chunkTokens, maxBatchTokens } from '../src/worker/engine-settings.js';
import { type OperatorShares, profileOperators } from './engine/operator-profile.js';

type Spent = DecoderEngine['spentMs'];
const parts = ['step', 'run', 'sample', 'copy'] as const;

/** One measurement. Shares are of the time of a step. */
interface Row {
  readonly what: string;
  readonly 'tokens/s': number;
  readonly 'step ms': number;
  readonly projections?: string;
  readonly attention?: string;
  readonly sampling?: string;
  readonly copying?: string;
  readonly rest?: string;
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    threads: { type: 'string' },
    'no-spinning': { type: 'boolean', default: false },
    seconds: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
  },
});
const [folder] = positionals;
if (folder === undefined) {
  console.error('usage: npm run bench:engine -- FOLDER [--threads N] [--no-spinning] [--seconds S] [--json]');
  process.exit(2);
}
const budgetMs = Number(values.seconds) * 1000;

const manifest = await readManifest(folder);
const graph = join(folder, compiledFiles.graph);
const sessionOptions = {
  threads: values.threads === undefined ? availableParallelism() : Number(values.threads),
  spinning: !values['no-spinning'],
};
const drawing: Sampling = {
  temperature: 0.7,
  topP: 0.7,
  topK: 50,
  minP: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  seed: 1,
  logitBias: [],
};

const session = await OnnxSession.open(graph, sessionOptions);
const rows = manifest.kind === 'decoder' ? await benchDecoder(manifest) : await benchEncoder(manifest);
if (values.json) console.log(JSON.stringify(rows, null, 2));
else console.table(rows);
await session.close();

async function benchDecoder(model: DecoderManifest): Promise<Row[]> {
  const runner = new OnnxDecoderRunner(session, model);
  const measured: Row[] = [];
  for (const length of [32, 128, 512]) {
    if (length < model.contextLength) measured.push(await prefill(runner, model, length));
  }
  for (const context of [160, 1000]) {
    for (const batch of [1, 8, 32]) {
      if (context < model.contextLength) measured.push(await decode(runner, model, { batch, context }));
    }
  }
  measured.push(await decode(runner, model, { batch: 1, context: 160, repeats: true }));
  measured.push(await decode(runner, model, { batch: 32, context: 160, logprobs: true }));
  return measured;
}

function buildEngine(runner: OnnxDecoderRunner, model: DecoderManifest): DecoderEngine {
  return new DecoderEngine(runner, {
    maxSequences: 32,
    contextLength: model.contextLength,
    kvBytes: 4 * 2 ** 30,
    maxBatchTokens: maxBatchTokens.decoder,
    chunkTokens,
    prefixBytes: 0,
  });
}

/** Whole prompts, one after the other, each with the first token it leads to. */
async function prefill(runner: OnnxDecoderRunner, model: DecoderManifest, length: number): Promise<Row> {
  const once = async (engine: DecoderEngine) => {
    engine.generate(request(model, { prompt: randomPrompt(length, model.vocabularySize), maxTokens: 1 }));
    while (engine.busy) await engine.step();
  };
  const engine = buildEngine(runner, model);
  await once(engine);
  const before = engine.spentMs;
  let runs = 0;
  const started = performance.now();
  while (performance.now() - started < budgetMs) {
    await once(engine);
    runs++;
  }
  const spent = subtract(engine.spentMs, before);
  const operators = await profile(model, 4, async (profiled) => {
    for (let run = 0; run <= 4; run++) await once(profiled);
  });
  return describe({ what: `prefill ${length}`, spent, operators, steps: runs, tokens: runs * length });
}

interface Decoding {
  readonly batch: number;
  readonly context: number;
  /** Whether prompt and answer say the same over and over; else nothing comes twice. */
  readonly repeats?: boolean;
  /** Whether each token is told with its log-probability and those of the likeliest. */
  readonly logprobs?: boolean;
}

/** Steps of `batch` sequences around a length of `context`. They are choices of one prompt, to be read but once. */
async function decode(
  runner: OnnxDecoderRunner,
  model: DecoderManifest,
  { batch, context, repeats = false, logprobs = false }: Decoding,
): Promise<Row> {
  const warmUp = 4;
  /** Steps of all sequences together, after the prompt was read and some steps were made, and what they took. */
  const steps = async (engine: DecoderEngine, count: number): Promise<Spent & { tokens: number }> => {
    const length = context - Math.round(count / 2) - warmUp;
    const said = randomPrompt(repeats ? 8 : length, model.vocabularySize);
    const prompt = Int32Array.from({ length }, (_, index) => said[index % said.length]!);
    // Of a sequence that repeats itself a step may bring several tokens.
    const maxTokens = model.decodeWidth * (count + warmUp + 2);
    const sampling = { ...drawing, temperature: repeats ? 0 : 100 };
    const fields = { prompt, choices: batch, maxTokens, sampling, ...(logprobs && { topLogprobs: 5 }) };
    engine.generate(request(model, fields));
    const decoded = engine.counters().decodeTokens;
    while (engine.counters().decodeTokens < decoded + batch * warmUp) await engine.step();
    const before = engine.spentMs;
    const { decodeTokens } = engine.counters();
    for (let step = 0; step < count; step++) await engine.step();
    const spent = subtract(engine.spentMs, before);
    const tokens = engine.counters().decodeTokens - decodeTokens;
    engine.cancel('bench');
    await engine.step();
    return { ...spent, tokens };
  };
  const engine = buildEngine(runner, model);
  const count = repeats ? 8 : 64;
  // The system hands out the memory of the cache as it is first written, once in a worker's life.
  await steps(engine, count);
  const spent: Spent = { step: 0, run: 0, sample: 0, copy: 0 };
  let made = 0;
  let tokens = 0;
  while (made === 0 || spent.step < budgetMs) {
    const more = await steps(engine, count);
    for (const part of parts) spent[part] += more[part];
    made += count;
    tokens += more.tokens;
  }
  const operators = await profile(model, 8, async (profiled) => {
    await steps(profiled, 8);
  });
  const how = `${repeats ? ', repeating' : ''}${logprobs ? ', log-probabilities' : ''}`;
  const what = `decode B=${batch} context ${context}${how}`;
  return describe({ what, spent, operators, steps: made, tokens });
}

/** What the operators take in the last `runs` runs of what `work` has an engine do, in a session of its own. */
function profile(
  model: DecoderManifest,
  runs: number,
  work: (engine: DecoderEngine) => Promise<void>,
): Promise<OperatorShares> {
  return profileOperators(runs, async (profilePrefix) => {
    const profiled = await OnnxSession.open(graph, { ...sessionOptions, profilePrefix });
    try {
      await work(buildEngine(new OnnxDecoderRunner(profiled, model), model));
    } finally {
      await profiled.close();
    }
  });
}

async function benchEncoder(model: EncoderManifest): Promise<Row[]> {
  const { contextLength } = model;
  const engine = new EncoderEngine(new OnnxEncoderRunner(session, model), {
    contextLength,
    maxBatchTokens: maxBatchTokens.encoder,
  });
  const measured: Row[] = [];
  const lengths = [32, 100, 256].filter((length) => length <= contextLength);
  // Attention of sequences that run alone takes another way.
  if (contextLength > maxBatchTokens.encoder) lengths.push(contextLength);
  for (const length of lengths) {
    const count = Math.max(1, Math.min(64, Math.floor(16_384 / length)));
    const sequences = Array.from({ length: count }, () => ({
      tokens: randomPrompt(length, model.vocabularySize),
      types: new Int32Array(length),
    }));
    const once = async () => {
      engine.encode({ id: 'bench', sequences, priority: 'interactive' });
      while (engine.busy) await engine.step();
    };
    await once();
    const before = engine.counters();
    const started = performance.now();
    while (performance.now() - started < budgetMs) await once();
    const stepMs = performance.now() - started;
    const after = engine.counters();
    const tokens = after.encodedTokens - before.encodedTokens;
    measured.push({
      what: `encode ${round((tokens / length / stepMs) * 1000)} sequences/s of ${length}`,
      'tokens/s': Math.round((tokens / stepMs) * 1000),
      'step ms': round(stepMs / (after.steps - before.steps)),
    });
  }
  return measured;
}

function subtract(after: Spent, before: Spent): Spent {
  return Object.fromEntries(parts.map((part) => [part, after[part] - before[part]])) as unknown as Spent;
}

function describe(measured: {
  what: string;
  spent: Spent;
  operators: OperatorShares;
  steps: number;
  tokens: number;
}): Row {
  const { what, spent, operators, steps, tokens } = measured;
  const share = (ms: number) => `${((100 * ms) / spent.step).toFixed(1)}%`;
  const projections = spent.run * operators.projections;
  const attention = spent.run * operators.attention;
  return {
    what,
    'tokens/s': Math.round((tokens / spent.step) * 1000),
    'step ms': round(spent.step / steps),
    projections: share(projections),
    attention: share(attention),
    sampling: share(spent.sample),
    copying: share(spent.copy),
    rest: share(spent.step - projections - attention - spent.sample - spent.copy),
  };
}

function request(model: DecoderManifest, fields: Partial<GenerateRequest>): GenerateRequest {
  return {
    id: 'bench',
    scope: 'bench',
    prompt: randomPrompt(8, model.vocabularySize),
    maxTokens: 1,
    choices: 1,
    sampling: drawing,
    endTokens: [],
    priority: 'interactive',
    ...fields,
  };
}

function randomPrompt(length: number, vocabularySize: number): Int32Array {
  return Int32Array.from({ length }, () => Math.floor(Math.random() * vocabularySize));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
