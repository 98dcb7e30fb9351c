import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OnnxDecoderRunner } from '../../engine/onnx-decoder-runner.js';
import { OnnxSession } from '../../engine/onnx-session.js';
import { loadCatalogue } from '../../models/catalogue-file.js';
import { compileModel } from '../../models/compile/compile-model.js';
import { openCheckpoint } from '../../models/compile/open-checkpoint.js';
import { compiledFiles, type WeightFormat } from '../../models/manifest.js';
import { obtainModel } from '../../models/prepare-model.js';
import type { Config } from '../../platform/config.js';
import { packagePath } from '../../platform/package-root.js';
import { measureStates } from '../../worker/measure-states.js';
import { Tokenizer } from '../../worker/tokenizer.js';
import type { Terminal } from '../client/terminal.js';
import { type Evaluation, evaluateFormats } from '../model-evaluate/evaluate-formats.js';
import { forEachModel } from '../prepare-models.js';
import { createProgress, type Progress } from '../progress.js';
import { formatTable } from '../table.js';

export interface ModelEvaluateOptions {
  /** A folder in Hugging Face layout, a .gguf file, or the id of a model of the catalogue. */
  readonly source: string;
  readonly formats: readonly WeightFormat[];
  /** The file with the text; the one of the package when left out. */
  readonly text?: string;
  readonly json: boolean;
  /** Threads of ONNX Runtime. */
  readonly threads: number;
}

interface Context {
  readonly config: Config;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** Rows of text that are read together, and their length: that of a busy server's requests. */
const rows = 16;
const windowTokens = 256;

/** What a format may lose for being the quickest. */
const toleratedLoss = 0.02;

/** A format's figures beside those of float32. */
interface Row extends Evaluation {
  readonly format: WeightFormat;
  /** How much larger the perplexity is than that of float32: 0.02 is 2%. */
  readonly loss: number;
  /** Of the compiled weights. */
  readonly mebibytes: number;
}

/**
 * `headrace model evaluate`: compiles a decoder in several formats into a temporary folder, has each predict the same
 * text token by token, and prints how far each is from float32.
 * @throws CheckpointError when the source cannot be compiled, or is no decoder; Error when there is no such source or
 * the text is too short
 */
export async function modelEvaluate(options: ModelEvaluateOptions, context: Context): Promise<void> {
  const { terminal, signal } = context;
  const text = await readFile(options.text ?? packagePath('evaluation', 'english.txt'), 'utf8');
  const path = await findSource(options.source, context);
  const formats = [...new Set<WeightFormat>(['float32', ...options.formats])];
  const folder = await mkdtemp(join(tmpdir(), 'headrace-evaluate-'));
  const progress = createProgress(terminal);
  const opened: OpenModel[] = [];
  try {
    for (const format of formats) {
      const place = { path, format, folder: join(folder, format) };
      opened.push(await open(place, { threads: options.threads, progress, signal }));
    }
    const tokenizer = await Tokenizer.load(join(folder, formats[0]!));
    const results = await evaluateFormats({
      runners: opened.map(({ runner }) => runner),
      tokens: await tokenizer.encode(text),
      begin: tokenizer.tokensBefore(),
      windowTokens: Math.min(windowTokens, opened[0]!.contextLength),
      rows,
      onProgress: (share) => progress.update('evaluating', share),
      signal,
    });
    progress.end();
    const reference = results[0]!.perplexity;
    const table = results.map((result, index): Row => {
      const { format, mebibytes } = opened[index]!;
      return { format, ...result, loss: result.perplexity / reference - 1, mebibytes };
    });
    print(table, options.json, terminal);
  } finally {
    progress.end();
    for (const { runner } of opened) await runner.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** What is on this machine under that name, else the files of the catalogue's model of that id. */
async function findSource(source: string, { config, terminal, signal }: Context): Promise<string> {
  const isThere = await stat(source).then(
    () => true,
    () => false,
  );
  if (isThere) return source;
  const { models } = await loadCatalogue(config.modelsFile);
  const entry = models.find(({ id }) => id === source);
  if (entry === undefined) {
    const known = models.map(({ id }) => id).join(', ');
    throw new Error(`"${source}" is neither a file nor in the catalogue, which lists ${known}.`);
  }
  const [obtained] = await forEachModel({ config, models: [entry], terminal, signal }, obtainModel);
  return obtained!.path;
}

/** A compiled model, loaded. */
interface OpenModel {
  readonly format: WeightFormat;
  readonly runner: OnnxDecoderRunner;
  readonly contextLength: number;
  readonly mebibytes: number;
}

async function open(
  { path, format, folder }: { path: string; format: WeightFormat; folder: string },
  { threads, progress, signal }: { threads: number; progress: Progress; signal: AbortSignal },
): Promise<OpenModel> {
  await mkdir(folder);
  const checkpoint = await openCheckpoint(path);
  try {
    const onProgress = (share: number) => progress.update(`compiling ${format}`, share);
    const manifest = await compileModel({
      checkpoint,
      weights: format,
      folder,
      onProgress,
      signal,
      measureStates,
    });
    progress.end();
    if (manifest.kind !== 'decoder') {
      throw new Error(`${path} is a reranker; what is evaluated is how well a chat model predicts a text.`);
    }
    const session = await OnnxSession.open(join(folder, compiledFiles.graph), { threads });
    return {
      format,
      runner: new OnnxDecoderRunner(session, manifest),
      contextLength: manifest.contextLength,
      mebibytes: (await stat(join(folder, compiledFiles.weights))).size / 2 ** 20,
    };
  } finally {
    await checkpoint.close();
  }
}

function print(rows: readonly Row[], json: boolean, { stdout }: Terminal): void {
  const quickest = rows
    .filter(({ loss }) => loss <= toleratedLoss)
    .reduce((best, row) => (row.tokensPerSecond > best.tokensPerSecond ? row : best));
  if (json) {
    stdout.write(`${JSON.stringify({ formats: rows, quickestWithin2Percent: quickest.format }, null, 2)}\n`);
    return;
  }
  const head = ['format', 'perplexity', 'to float32', 'same top token', 'KL divergence', 'tokens/s', 'MiB'];
  const cells = rows.map((row) => [
    row.format,
    row.perplexity.toFixed(3),
    `${row.loss < 0 ? '' : '+'}${(100 * row.loss).toFixed(2)}%`,
    `${(100 * row.top1).toFixed(1)}%`,
    row.divergence.toFixed(4),
    row.tokensPerSecond.toFixed(0),
    row.mebibytes.toFixed(0),
  ]);
  stdout.write(`${formatTable(head, cells)}\n`);
  stdout.write(
    `${rows[0]!.tokens} tokens predicted. The quickest within 2% of float32: ${quickest.format}.\n`,
  );
}
