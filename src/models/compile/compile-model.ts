import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { compiledFiles, type Manifest, manifestFormat, type WeightFormat } from '../manifest.js';
import { decodeWidth, type MeasuredStates } from './attention-graph.js';
import type { Checkpoint, DecoderConfig, EncoderConfig } from './checkpoint.js';
import { buildDecoderGraph } from './decoder-graph.js';
import { buildEncoderGraph, takesTokenTypes } from './encoder-graph.js';
import { ExternalData } from './external-data.js';
import { float32Projection } from './float32-projection.js';
import { Graph, type GraphOutput } from './graph.js';
import { int4Projection } from './int4-projection.js';
import { int8Projection } from './int8-projection.js';
import type { Measured, MeasureStates } from './measure-states.js';
import type { Projection } from './projection.js';
import { RowReaches } from './row-reaches.js';
import { StateScales } from './state-scales.js';

const projections: Record<WeightFormat, Projection> = {
  float32: float32Projection,
  int8: int8Projection,
  int4: int4Projection,
};

export interface CompileOptions {
  readonly checkpoint: Checkpoint;
  readonly weights: WeightFormat;
  /** An empty folder that exists. What is in it after a failure is of no use. */
  readonly folder: string;
  /** Called with the share of the work that is done, 0..1, after each layer. */
  readonly onProgress?: (share: number) => void;
  readonly signal?: AbortSignal;
  /** Runs a graph that rounds what it computes with to 8 bits over some text. */
  readonly measureStates: MeasureStates;
}

/**
 * Compiles a checkpoint into `folder`: graph, weights, tokenizer and manifest. Memory stays at the model's largest
 * tensors; the weights go to the disk as they are made.
 * @throws CheckpointError when a tensor is missing or misshapen; the signal's reason when it aborts
 */
export async function compileModel(options: CompileOptions): Promise<Manifest> {
  const { checkpoint, weights, folder } = options;
  const { config } = checkpoint;
  const manifest = describe(checkpoint, weights);
  const data = await ExternalData.create(join(folder, compiledFiles.weights));
  try {
    const graph = new Graph(data, compiledFiles.weights);
    const projection = projections[weights];
    const common = {
      projection,
      onProgress: options.onProgress ?? (() => {}),
      signal: options.signal ?? new AbortController().signal,
    };
    const reaches = new RowReaches();
    let scales: StateScales | undefined;
    let states: readonly MeasuredStates[] = [];
    if (config.kind === 'decoder') {
      if (projection.kvFormat === 'int8') scales = new StateScales(config);
      const source = projection.prepare({ config, tensors: checkpoint });
      states = await buildDecoderGraph(graph, { ...common, scales, reaches, ...source });
    } else {
      await buildEncoderGraph(graph, { ...common, config, reaches, tensors: checkpoint });
    }
    if (scales || reaches.largest.size > 0) {
      const measured = await measure(graph, states, reaches, { ...options, manifest });
      scales?.set(measured.states);
      reaches.set(measured.rows);
    }
    await writeFile(join(folder, compiledFiles.graph), graph.encode());
  } finally {
    await data.close();
  }
  await writeFile(join(folder, compiledFiles.tokenizer), checkpoint.tokenizerJson);
  await writeFile(join(folder, compiledFiles.manifest), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

async function measure(
  graph: Graph,
  states: readonly MeasuredStates[],
  reaches: RowReaches,
  { checkpoint, folder, manifest, signal, measureStates }: CompileOptions & { readonly manifest: Manifest },
): Promise<Measured> {
  const outputs = states.flatMap((layer, index) =>
    Object.entries(layer).map(
      ([part, value]): GraphOutput => ({
        name: `${part}.${index}`,
        value,
        type: 'float32',
        dims: part === 'mixed' ? ['R', 'W'] : ['B', 'S', 'W'],
      }),
    ),
  );
  const rows = [...reaches.largest].map(
    ([layer, value]): GraphOutput => ({ name: `rows.${layer}`, value, type: 'float32', dims: ['R', 1] }),
  );
  const path = join(folder, 'measured.onnx');
  await writeFile(path, graph.encode([...outputs, ...rows]));
  const measured = await measureStates({ path, tokenizerJson: checkpoint.tokenizerJson, manifest, signal });
  await rm(path);
  return measured;
}

function describe(checkpoint: Checkpoint, weights: WeightFormat): Manifest {
  const { config } = checkpoint;
  const common = {
    format: manifestFormat,
    architecture: config.architecture,
    weights,
    sourceSha256: checkpoint.sha256,
    vocabularySize: config.vocabularySize,
    contextLength: config.contextLength,
  } as const;
  return config.kind === 'decoder'
    ? { ...common, ...describeDecoder(checkpoint, config), ...describeCache(projections[weights]) }
    : { ...common, ...describeEncoder(config) };
}

/** Products with a cache in float32 are summed in another order for several positions than for one. */
function describeCache({ kvFormat }: Projection) {
  return { kvFormat, decodeWidth: kvFormat === 'int8' ? decodeWidth : 1 };
}

function describeDecoder(checkpoint: Checkpoint, config: DecoderConfig) {
  return {
    kind: config.kind,
    layers: config.layers,
    heads: config.heads,
    kvHeads: config.kvHeads,
    headSize: config.headSize,
    endTokens: [...checkpoint.endTokens],
    chatTemplate: checkpoint.chatTemplate,
    beginText: checkpoint.beginText,
    endText: checkpoint.endText,
    generation: { ...checkpoint.generation },
  };
}

function describeEncoder(config: EncoderConfig) {
  return {
    kind: config.kind,
    scoring: config.scoring,
    dimension: config.scoring === 'cross-encoder' ? 1 : config.hiddenSize,
    paddingToken: config.paddingToken,
    tokenTypes: takesTokenTypes(config),
    firstPosition: config.firstPosition,
  };
}
