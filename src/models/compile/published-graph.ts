import { access, constants, copyFile, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { compiledFiles, type EncoderManifest, manifestFormat } from '../manifest.js';
import { dataTypes } from '../onnx-writer.js';
import { hashCheckpoint, publishedGraphs } from '../sources/checkpoint-files.js';
import type { EncoderConfig } from './checkpoint.js';
import { CheckpointError } from './checkpoint.js';
import { readEncoderLimits } from './encoder-limits.js';
import { classifierScoring } from './hugging-face-config.js';
import { readHuggingFaceTokens } from './hugging-face-tokens.js';
import { parseJson } from './json-file.js';
import { type GraphSignature, readGraphSignature } from './onnx-reader.js';

const size = z.int().positive();

/** What is read of a config.json: the graph itself knows the rest. */
const configSchema = z.object({
  model_type: z.string(),
  architectures: z.array(z.string()).nullish(),
  vocab_size: size,
  /** DistilBERT's name of the hidden size is `dim`. */
  hidden_size: size.optional(),
  dim: size.optional(),
  max_position_embeddings: size,
  pad_token_id: z.int().nonnegative().nullish(),
  num_labels: size.optional(),
  id2label: z.record(z.string(), z.unknown()).nullish(),
});

/** Files that are not copied under the name that they had. */
const ownFiles = [compiledFiles.manifest, compiledFiles.graph, compiledFiles.tokenizer];

/** Their positions start behind the padding token's, as RoBERTa's do. */
const shiftedPositions = new Set(['roberta', 'xlm-roberta', 'camembert', 'mpnet']);

/** The graph that the authors of a model have published in its folder; undefined when there is none. */
export async function findPublishedGraph(folder: string): Promise<string | undefined> {
  for (const name of publishedGraphs) {
    const path = join(folder, name);
    if (await access(path).then(...answers)) return path;
  }
  return undefined;
}

const answers = [() => true, () => false] as const;

export interface AdoptOptions {
  /** The folder in Hugging Face layout. */
  readonly source: string;
  /** The graph in it. */
  readonly graph: string;
  /** The source's `hashCheckpoint`, where the caller has it. */
  readonly sha256?: string | undefined;
  /** An empty folder that exists. */
  readonly folder: string;
}

/**
 * Puts an encoder that was published as a graph into `folder`, beside the manifest that says how it is run: nothing
 * of it is compiled.
 * @throws CheckpointError when a file is missing or broken, or the graph is not that of an encoder
 */
export async function adoptPublishedGraph(options: AdoptOptions): Promise<EncoderManifest> {
  const { source, graph, folder } = options;
  const configPath = join(source, 'config.json');
  const configText = await readFile(configPath, 'utf8').catch((error: Error) => {
    throw new CheckpointError(`${configPath}: ${error.message}`, { cause: error });
  });
  const config = parseJson(configPath, configText, configSchema);
  const tokens = await readHuggingFaceTokens(source);
  const signature = await readGraphSignature(graph);
  const scoring = classifierScoring(configPath, config);
  const dimension = scoring === 'cross-encoder' ? 1 : (config.hidden_size ?? config.dim);
  if (dimension === undefined) throw new CheckpointError(`${configPath}: hidden_size is missing`);
  checkSignature(graph, signature, scoring);

  const shifted = shiftedPositions.has(config.model_type);
  const paddingToken = config.pad_token_id ?? (shifted ? 1 : 0);
  const firstPosition = shifted ? paddingToken + 1 : 0;
  const manifest: EncoderManifest = {
    format: manifestFormat,
    kind: 'encoder',
    architecture: config.model_type,
    weights: 'published',
    sourceSha256: options.sha256 ?? (await hashCheckpoint(source)),
    vocabularySize: config.vocab_size,
    contextLength: await readEncoderLimits(source, {
      scoring,
      positions: config.max_position_embeddings - firstPosition,
      tokens,
    }),
    scoring,
    dimension,
    paddingToken,
    tokenTypes: signature.inputs.some(({ name }) => name === 'token_type_ids'),
    firstPosition,
  };
  await copyFile(graph, join(folder, compiledFiles.graph), constants.COPYFILE_FICLONE);
  for (const name of signature.dataFiles) await copyData(graph, name, folder);
  await writeFile(join(folder, compiledFiles.tokenizer), tokens.tokenizerJson);
  await writeFile(join(folder, compiledFiles.manifest), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

const knownInputs = ['input_ids', 'attention_mask', 'token_type_ids', 'position_ids'];
const knownOutputs = {
  'cross-encoder': ['logits'],
  'bi-encoder': ['sentence_embedding', 'last_hidden_state', 'token_embeddings'],
} as const satisfies Record<EncoderConfig['scoring'], readonly string[]>;

function checkSignature(
  graph: string,
  { inputs, outputs }: GraphSignature,
  scoring: EncoderConfig['scoring'],
): void {
  const names = (values: GraphSignature['inputs']) => values.map(({ name }) => name).join(', ');
  const known: readonly string[] = knownOutputs[scoring];
  const output = outputs.find(({ name }) => known.includes(name));
  if (!inputs.some(({ name }) => name === 'input_ids')) {
    throw new CheckpointError(`${graph}: takes ${names(inputs) || 'nothing'}; input_ids is missing`);
  }
  for (const { name, type } of inputs) {
    if (!knownInputs.includes(name)) {
      throw new CheckpointError(`${graph}: takes ${name}; an encoder takes ${knownInputs.join(', ')}`);
    }
    if (type !== dataTypes.int64) throw new CheckpointError(`${graph}: ${name} is not of type int64`);
  }
  if (!output) {
    throw new CheckpointError(
      `${graph}: gives ${names(outputs) || 'nothing'}; a ${scoring} gives ${known.join(' or ')}`,
    );
  }
  if (output.type !== dataTypes.float32)
    throw new CheckpointError(`${graph}: ${output.name} is not of type float32`);
  if (scoring === 'cross-encoder' && (output.dims.at(-1) ?? 1) !== 1) {
    throw new CheckpointError(`${graph}: logits has ${output.dims.at(-1)} columns; a relevance score is one`);
  }
}

async function copyData(graph: string, name: string, folder: string): Promise<void> {
  if (basename(name) !== name || ['.', '..', ...ownFiles].includes(name)) {
    throw new CheckpointError(
      `${graph}: its weights are in ${JSON.stringify(name)}, which is no file beside it`,
    );
  }
  const from = join(dirname(graph), name);
  await copyFile(from, join(folder, name), constants.COPYFILE_FICLONE).catch((error: Error) => {
    throw new CheckpointError(`${graph}: its weights in ${name}: ${error.message}`, { cause: error });
  });
}
