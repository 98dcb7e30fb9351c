import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { OnnxDecoderRunner } from '../../engine/onnx-decoder-runner.js';
import { OnnxEncoderRunner } from '../../engine/onnx-encoder-runner.js';
import { OnnxSession } from '../../engine/onnx-session.js';
import { compileModel } from '../../models/compile/compile-model.js';
import { openCheckpoint } from '../../models/compile/open-checkpoint.js';
import { compiledFiles, type Manifest, type WeightFormat } from '../../models/manifest.js';
import { measureStates } from '../../worker/measure-states.js';
import { Tokenizer } from '../../worker/tokenizer.js';
import { checkDecoder, type DecoderResult } from '../model-check/check-decoder.js';
import { checkBiEncoder, checkCrossEncoder, type EncoderResult } from '../model-check/check-encoder.js';
import { type ReferenceCases, readReferenceCases } from '../model-check/reference-cases.js';

/** What float32 may differ from the reference by: sums in another order, and the digits that the files keep. */
const tolerance = 1e-3;

export interface ModelCheckOptions {
  /** A folder in Hugging Face layout, or a .gguf file. */
  readonly source: string;
  /** The file with the reference cases. */
  readonly cases: string;
  readonly weights: WeightFormat;
  /** Threads of ONNX Runtime. */
  readonly threads: number;
}

/**
 * `headrace model check`: compiles a model into a temporary folder, runs the reference cases through what serves
 * requests, and prints as JSON how far it is from them.
 * @returns the exit code: 1 when float32 is beyond the tolerance or draws another greedy token, else 0; other
 *   formats are approximations, and their distance is for the reader to judge
 * @throws CheckpointError when the source cannot be compiled; Error when the cases cannot be read, or are another
 *   kind of model's
 */
export async function modelCheck(
  options: ModelCheckOptions,
  { stdout, signal }: { stdout: Writable; signal?: AbortSignal },
): Promise<number> {
  const reference = await readReferenceCases(options.cases);
  const folder = await mkdtemp(join(tmpdir(), 'headrace-check-'));
  try {
    const manifest = await compile(options, reference, folder, signal);
    const results = await runCases(options, reference, folder, manifest);
    const largest = results.reduce((most, { largest_error }) => Math.max(most, largest_error), 0);
    const isExact =
      largest <= tolerance && results.every((result) => !('greedy_equal' in result) || result.greedy_equal);
    const passed = options.weights !== 'float32' || isExact;
    const report = {
      source: options.source,
      architecture: manifest.architecture,
      weights: options.weights,
      cases: results,
      largest_error: largest,
      tolerance: options.weights === 'float32' ? tolerance : null,
      passed,
    };
    stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    return passed ? 0 : 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function compile(
  { source, cases, weights }: ModelCheckOptions,
  reference: ReferenceCases,
  folder: string,
  signal: AbortSignal | undefined,
): Promise<Manifest> {
  const checkpoint = await openCheckpoint(source);
  try {
    const { config } = checkpoint;
    const kind = config.kind === 'decoder' ? 'decoder' : config.scoring;
    if (kind !== reference.kind) {
      throw new Error(`${cases}: cases of a ${reference.kind}, but ${source} is a ${kind}`);
    }
    return await compileModel({ checkpoint, weights, folder, measureStates, ...(signal && { signal }) });
  } finally {
    await checkpoint.close();
  }
}

async function runCases(
  { threads }: ModelCheckOptions,
  reference: ReferenceCases,
  folder: string,
  manifest: Manifest,
): Promise<Array<DecoderResult | EncoderResult>> {
  const session = await OnnxSession.open(join(folder, compiledFiles.graph), { threads });
  try {
    if (manifest.kind === 'decoder') {
      if (reference.kind !== 'decoder') throw new Error('Cases of another kind. This is a bug.');
      return await checkDecoder(new OnnxDecoderRunner(session, manifest), manifest, reference.cases);
    }
    const runner = new OnnxEncoderRunner(session, manifest);
    const encoder = { runner, manifest, tokenizer: await Tokenizer.load(folder) };
    switch (reference.kind) {
      case 'cross-encoder':
        return await checkCrossEncoder(encoder, reference.cases);
      case 'bi-encoder':
        return await checkBiEncoder(encoder, reference.cases);
      default:
        throw new Error('Cases of another kind. This is a bug.');
    }
  } finally {
    await session.close();
  }
}
