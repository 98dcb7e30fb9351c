/**
 * Compiled models in turns, in one process: what a change of the graph is worth on a machine whose speed changes.
 *
 *     npm run bench:turns -- FOLDER FOLDER... [--rows 32] [--positions 160] [--uneven] [--prefill] [--rounds 40]
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BatchBuilder, type BatchRow } from '../src/engine/batch.js';
import { encoderBatch } from '../src/engine/encoder-batch.js';
import { KvCache } from '../src/engine/kv-cache.js';
import { OnnxDecoderRunner } from '../src/engine/onnx-decoder-runner.js';
import { OnnxEncoderRunner } from '../src/engine/onnx-encoder-runner.js';
import { OnnxSession } from '../src/engine/onnx-session.js';
import {
  compiledFiles,
  type DecoderManifest,
  type EncoderManifest,
  readManifest,
} from '../src/models/manifest.js';
import { median } from './load/percentiles.js';

const { positionals: folders, values } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '32' },
    positions: { type: 'string', default: '160' },
    uneven: { type: 'boolean', default: false },
    prefill: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '40' },
  },
});
if (folders.length === 0) {
  console.error(
    'usage: npm run bench:turns -- FOLDER... [--rows N] [--positions N] [--uneven] [--prefill] [--rounds N]',
  );
  process.exit(2);
}
const rows = Number(values.rows);
const positions = Number(values.positions);
/** Steps of one before it is another's turn; the first of them is not measured. */
const turn = values.prefill ? 3 : 7;

const lengths = Array.from({ length: rows }, (_, row) =>
  Math.round(positions * (values.uneven ? 0.75 + (0.5 * row) / rows : 1)),
);
/** The rows of a decoder's step: prompts of so many tokens, or one token each behind as many positions. */
const batch: BatchRow[] = lengths.map((length, row) => ({
  ...(values.prefill ? { cached: 0, tokens: tokens(length) } : { cached: length, tokens: [5 + row] }),
  top: 50,
  whole: false,
}));
const longest = Math.max(...lengths) + 1;

const steps = await Promise.all(folders.map(open));
const taken = folders.map((): number[] => []);
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [index, step] of steps.entries()) {
    await step();
    const started = performance.now();
    for (let count = 1; count < turn; count++) await step();
    taken[index]!.push((performance.now() - started) / (turn - 1));
  }
}
const medians = taken.map((times) => median(times) ?? Number.NaN);
console.table(
  folders.map((folder, index) => ({
    folder,
    'step ms': Number(medians[index]!.toFixed(2)),
    'to the first': Number((medians[index]! / medians[0]!).toFixed(3)),
  })),
);

/** One step of a compiled model over the batch, again and again: of a decoder in the same places of its cache. */
async function open(folder: string): Promise<() => Promise<unknown>> {
  const manifest = await readManifest(folder);
  const session = await OnnxSession.open(join(folder, compiledFiles.graph), {
    threads: availableParallelism(),
  });
  return manifest.kind === 'decoder' ? decode(session, manifest) : encode(session, manifest);
}

async function decode(session: OnnxSession, manifest: DecoderManifest): Promise<() => Promise<unknown>> {
  const runner = new OnnxDecoderRunner(session, manifest);
  const maxBytes = Number.MAX_SAFE_INTEGER;
  const cache = new KvCache({ shape: manifest, slots: rows, contextLength: longest, maxBytes });
  cache.fit({ rows, longest, limit: longest });
  const batches = new BatchBuilder();
  // What the cache has must be written once: memory that never was is one page for all of it, which costs no time to read.
  for (const [row, length] of lengths.entries()) {
    await runner.run({
      ...batches.build([{ cached: 0, tokens: tokens(length), whole: false }]),
      cache: cache.view(row, 1),
    });
  }
  return () => runner.run({ ...batches.build(batch), cache: cache.view(0, rows) });
}

function encode(session: OnnxSession, manifest: EncoderManifest): () => Promise<unknown> {
  const runner = new OnnxEncoderRunner(session, manifest);
  const sequences = lengths.map((length) => ({ tokens: tokens(length), types: new Int32Array(length) }));
  return () => runner.run(encoderBatch(sequences, manifest));
}

function tokens(length: number): Int32Array {
  return Int32Array.from({ length }, (_, at) => 5 + at);
}
