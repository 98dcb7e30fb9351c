import { readFile } from 'node:fs/promises';
import { z } from 'zod';

const decoderCasesSchema = z.object({
  cases: z
    .array(
      z.object({
        prompt_ids: z.array(z.int()).min(1),
        /** Of the prompt's last token. */
        last_logits: z.array(z.number()),
        greedy_ids: z.array(z.int()).min(1),
      }),
    )
    .min(1),
});
export type DecoderCase = z.infer<typeof decoderCasesSchema>['cases'][number];

const pairs = { query: z.string(), documents: z.array(z.string()).min(1) };

/** A cross-encoder: a logit, and its sigmoid, for each document. */
const crossEncoderCasesSchema = z.object({
  ...pairs,
  input_ids: z.array(z.array(z.int())),
  logits: z.array(z.number()),
  relevance_scores: z.array(z.number()),
});
export type CrossEncoderCases = z.infer<typeof crossEncoderCasesSchema>;

/** A bi-encoder: the cosine of query and document for each document, and the texts' embeddings. */
const biEncoderCasesSchema = z.object({
  ...pairs,
  cosine: z.array(z.number()),
  embeddings: z.array(z.object({ text: z.string(), embedding: z.array(z.number()) })),
});
export type BiEncoderCases = z.infer<typeof biEncoderCasesSchema>;

export type ReferenceCases =
  | { readonly kind: 'decoder'; readonly cases: readonly DecoderCase[] }
  | { readonly kind: 'cross-encoder'; readonly cases: CrossEncoderCases }
  | { readonly kind: 'bi-encoder'; readonly cases: BiEncoderCases };

/**
 * Reads what a reference implementation computed. The kind is told by the field that only it has.
 * @throws Error naming the file and the place in it
 */
export async function readReferenceCases(path: string): Promise<ReferenceCases> {
  const fields = parse(path, z.looseObject({}), await readJson(path));
  if ('cases' in fields) return { kind: 'decoder', cases: parse(path, decoderCasesSchema, fields).cases };
  if ('logits' in fields)
    return { kind: 'cross-encoder', cases: parse(path, crossEncoderCasesSchema, fields) };
  if ('cosine' in fields) return { kind: 'bi-encoder', cases: parse(path, biEncoderCasesSchema, fields) };
  throw new Error(`${path}: not reference cases: none of the fields cases, logits and cosine is there`);
}

async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new Error(`${path}: ${error.message}`, { cause: error });
  });
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${path}: not JSON: ${(error as Error).message}`, { cause: error });
  }
}

function parse<Schema extends z.ZodType>(path: string, schema: Schema, json: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new Error(
    `${path}: ${[issue.path.join('.'), issue.message].filter((part) => part !== '').join(': ')}`,
  );
}
