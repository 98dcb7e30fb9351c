/**
 * The engine alone, without thread, queue or HTTP, on a compiled model:
 *
 *     npm run bench:engine -- FOLDER [--threads N] [--no-spinning] [--seconds S] [--json]
 */
import { readFile } from 'node:fs/promises';
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
  manifestSchema,
} from '../src/models/manifest.js';

type Spent = DecoderEngine['spentMs'];

/** One measurement. Shares are of the time of a step. */
interface Row {
  readonly what: string;
  readonly 'tokens/s': number;
  readonly 'step ms': number;
  readonly run?: string;
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

const manifest = manifestSchema.parse(
  JSON.parse(await readFile(join(folder, compiledFiles.manifest), 'utf8')),
);
const session = await OnnxSession.open(join(folder, compiledFiles.graph), {
  threads: values.threads === undefined ? availableParallelism() : Number(values.threads),
  spinning: !values['no-spinning'],
});
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
      if (context < model.contextLength) measured.push(await decode(runner, model, batch, context));
    }
  }
  return measured;
}

function buildEngine(runner: OnnxDecoderRunner, model: DecoderManifest): DecoderEngine {
  return new DecoderEngine(runner, {
    maxSequences: 32,
    contextLength: model.contextLength,
    kvBytes: 4 * 2 ** 30,
    maxBatchTokens: 256,
    chunkTokens: 128,
    prefixBytes: 0,
  });
}

/** Whole prompts, one after the other, each with the first token it leads to. */
async function prefill(runner: OnnxDecoderRunner, model: DecoderManifest, length: number): Promise<Row> {
  const engine = buildEngine(runner, model);
  const once = async () => {
    engine.generate(request(model, { prompt: randomPrompt(length, model.vocabularySize), maxTokens: 1 }));
    while (engine.busy) await engine.step();
  };
  await once();
  const before = engine.spentMs;
  let runs = 0;
  const started = performance.now();
  while (performance.now() - started < budgetMs) {
    await once();
    runs++;
  }
  return row(`prefill ${length}`, { engine, before, steps: runs, tokens: runs * length });
}

/** Steps of `batch` sequences around a length of `context`. They are choices of one prompt, to be read but once. */
async function decode(
  runner: OnnxDecoderRunner,
  model: DecoderManifest,
  batch: number,
  context: number,
): Promise<Row> {
  const engine = buildEngine(runner, model);
  const steps = 64;
  const warmUp = 4;
  const prompt = randomPrompt(context - steps / 2 - warmUp, model.vocabularySize);
  let measured = 0;
  const total: Spent = { step: 0, run: 0, sample: 0, copy: 0 };
  while (measured === 0 || total.step < budgetMs) {
    engine.generate(request(model, { prompt, choices: batch, maxTokens: steps + warmUp + 2 }));
    while (
      engine.counters().decodeTokens <
      (measured / steps + 1) * batch * (warmUp + 1) + measured * batch
    ) {
      await engine.step();
    }
    const before = engine.spentMs;
    for (let step = 0; step < steps; step++) await engine.step();
    const after = engine.spentMs;
    for (const part of ['step', 'run', 'sample', 'copy'] as const) {
      total[part] += after[part] - before[part];
    }
    measured += steps;
    engine.cancel('bench');
    await engine.step();
  }
  return describe(`decode B=${batch} context ${context}`, total, measured, measured * batch);
}

async function benchEncoder(model: EncoderManifest): Promise<Row[]> {
  const engine = new EncoderEngine(new OnnxEncoderRunner(session, model), {
    contextLength: model.contextLength,
    maxBatchTokens: 2048,
  });
  const measured: Row[] = [];
  for (const length of [32, 100, 256]) {
    if (length > model.contextLength) continue;
    const sequences = Array.from({ length: 64 }, () => ({
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
      what: `encode ${Math.round((tokens / length / stepMs) * 1000)} sequences/s of ${length}`,
      'tokens/s': Math.round((tokens / stepMs) * 1000),
      'step ms': round(stepMs / (after.steps - before.steps)),
    });
  }
  return measured;
}

function row(
  what: string,
  run: { engine: DecoderEngine; before: Spent; steps: number; tokens: number },
): Row {
  const after = run.engine.spentMs;
  const spent: Spent = {
    step: after.step - run.before.step,
    run: after.run - run.before.run,
    sample: after.sample - run.before.sample,
    copy: after.copy - run.before.copy,
  };
  return describe(what, spent, run.steps, run.tokens);
}

function describe(what: string, spent: Spent, steps: number, tokens: number): Row {
  const share = (ms: number) => `${((100 * ms) / spent.step).toFixed(1)}%`;
  return {
    what,
    'tokens/s': Math.round((tokens / spent.step) * 1000),
    'step ms': round(spent.step / steps),
    run: share(spent.run),
    sampling: share(spent.sample),
    copying: share(spent.copy),
    rest: share(spent.step - spent.run - spent.sample - spent.copy),
  };
}

function request(model: DecoderManifest, fields: Partial<GenerateRequest>): GenerateRequest {
  const sampling: Sampling = {
    temperature: 0.7,
    topP: 0.7,
    topK: 50,
    minP: 0,
    frequencyPenalty: 0,
    presencePenalty: 0,
    seed: 1,
    logitBias: [],
  };
  return {
    id: 'bench',
    scope: 'bench',
    prompt: randomPrompt(8, model.vocabularySize),
    maxTokens: 1,
    choices: 1,
    sampling,
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
