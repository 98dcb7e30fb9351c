import { z } from 'zod';

export const maxDocuments = 10_000;
export const maxOverlapTokens = 80;

/** The body of `POST /v1/rerank`. Unknown fields are ignored; null means absent. */
export const rerankRequestSchema = z
  .object({
    model: z.string().min(1),
    query: z.string().min(1),
    documents: z.array(z.string('only strings are supported')).min(1).max(maxDocuments),
    top_n: z.int().min(1).nullish(),
    return_documents: z.boolean().nullish(),
    max_chunks_per_doc: z.int().min(1).nullish(),
    overlap_tokens: z.int().min(0).max(maxOverlapTokens).nullish(),
  })
  .meta({ id: 'RerankRequest' });
export type RerankRequest = z.infer<typeof rerankRequestSchema>;

export const rerankResponseSchema = z
  .object({
    id: z.string(),
    results: z.array(
      z.object({
        index: z.int().meta({ description: 'Position of the document in the request.' }),
        relevance_score: z.number().min(0).max(1),
        document: z.string().optional(),
      }),
    ),
    tokens: z.object({ total_tokens: z.int() }),
    meta: z.object({ tokens: z.object({ input_tokens: z.int(), output_tokens: z.int() }) }),
  })
  .meta({ id: 'RerankResponse' });
export type RerankResponse = z.infer<typeof rerankResponseSchema>;
