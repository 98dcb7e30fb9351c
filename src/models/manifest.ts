import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/**
 * `manifest.json` of a compiled model: everything the worker and the engine must know of it besides the graph
 * (`model.onnx`, with its weights in `model.onnx.data`) and the tokenizer (`tokenizer.json`) beside it.
 */

/** Bump when a change in the compiler makes older compiled folders unusable; they are then compiled again. */
export const manifestFormat = 11;

/** How projection weights are stored and multiplied. */
export const weightFormats = ['float32', 'int8', 'int4'] as const;
export const weightFormatSchema = z.enum(weightFormats);
export type WeightFormat = z.infer<typeof weightFormatSchema>;

/** How keys and values are kept between runs. */
export const kvFormatSchema = z.enum(['float32', 'int8']);
export type KvFormat = z.infer<typeof kvFormatSchema>;

/**
 * The first output of a decoder's graph, a sequence. onnxruntime-node returns no sequences, and when it finds that one is
 * wanted the graph has run, the other outputs are written and none of them has been copied: see `OnnxSession.runInto`.
 */
export const writtenOutput = 'written';

/** What runs a graph, as onnxruntime-node calls it. Which of them work depends on the machine. */
export const executionProviderSchema = z.enum(['cpu', 'cuda', 'tensorrt', 'dml', 'coreml', 'webgpu']);
export type ExecutionProvider = z.infer<typeof executionProviderSchema>;

const common = {
  format: z.literal(manifestFormat),
  /** The architecture's name as its own config gives it: `llama`, `bert`, ... */
  architecture: z.string(),
  /** `published`: the authors' own graph, whatever its weights are. */
  weights: z.enum([...weightFormats, 'published']),
  /** SHA-256 over the source's files; with the weights format and `format` it names the compiled folder. */
  sourceSha256: z.string(),
  vocabularySize: z.int().positive(),
  /** Positions the model was made for, prompt and completion together. */
  contextLength: z.int().positive(),
};

/** A causal language model. Graph inputs and outputs are those of `engine/decoder-runner.ts`. */
export const decoderManifestSchema = z.object({
  ...common,
  kind: z.literal('decoder'),
  layers: z.int().positive(),
  heads: z.int().positive(),
  kvHeads: z.int().positive(),
  headSize: z.int().positive(),
  kvFormat: kvFormatSchema,
  /** Up to how many new positions of a sequence that has a past are computed at once as one after the other, to the bit. */
  decodeWidth: z.int().positive(),
  /** Tokens that end a turn; generation stops at any of them and they are never part of the text. */
  endTokens: z.array(z.int()),
  /** The template source (Jinja) that renders messages into a prompt; null when the model has none. */
  chatTemplate: z.string().nullable(),
  /** Texts of the special tokens that templates refer to. */
  beginText: z.string().nullable(),
  endText: z.string().nullable(),
  /** The sampling defaults its authors published in generation_config.json. */
  generation: z.object({
    temperature: z.number().optional(),
    topP: z.number().optional(),
    topK: z.int().optional(),
  }),
});
export type DecoderManifest = z.infer<typeof decoderManifestSchema>;

/** A model that turns token sequences into one row each. */
export const encoderManifestSchema = z.object({
  ...common,
  kind: z.literal('encoder'),
  /**
   * `cross-encoder`: a row is one relevance logit of a (query, document) pair. `bi-encoder`: an embedding. `judge`: a
   * causal model is asked whether the document answers the query, and a row is the logit of its yes over its no.
   */
  scoring: z.enum(['cross-encoder', 'bi-encoder', 'judge']),
  /** Length of an output row: the hidden size for a bi-encoder, else 1. */
  dimension: z.int().positive(),
  paddingToken: z.int(),
  /** Whether the graph takes `token_type_ids`. */
  tokenTypes: z.boolean(),
  /** The position of a sequence's first token: 0 for BERT, padding token + 1 for RoBERTa. */
  firstPosition: z.int(),
});
export type EncoderManifest = z.infer<typeof encoderManifestSchema>;

/** A causal model as what it is when it judges documents: something that makes one row of each sequence. */
export function judgeManifest(decoder: DecoderManifest): EncoderManifest {
  const { format, architecture, weights, sourceSha256, vocabularySize, contextLength } = decoder;
  return {
    ...{ format, architecture, weights, sourceSha256, vocabularySize, contextLength },
    kind: 'encoder',
    scoring: 'judge',
    dimension: 1,
    paddingToken: 0,
    tokenTypes: false,
    firstPosition: 0,
  };
}

export const manifestSchema = z.discriminatedUnion('kind', [decoderManifestSchema, encoderManifestSchema]);
export type Manifest = z.infer<typeof manifestSchema>;

/** File names inside a compiled folder. */
export const compiledFiles = {
  manifest: 'manifest.json',
  graph: 'model.onnx',
  weights: 'model.onnx.data',
  tokenizer: 'tokenizer.json',
} as const;

/** Reads the manifest of a compiled folder. @throws Error when it is not there or not of this format */
export async function readManifest(folder: string): Promise<Manifest> {
  return manifestSchema.parse(JSON.parse(await readFile(join(folder, compiledFiles.manifest), 'utf8')));
}
