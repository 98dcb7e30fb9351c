import { z } from 'zod';

export const maxDocuments = 10_000;
export const maxOverlapTokens = 80;

/** The body of `POST /v1/rerank`. Unknown fields are ignored; null means absent. */
export const rerankRequestSchema = z
  .object({
    model: z.string().min(1).meta({ description: 'The id of a reranker that is online.' }),
    query: z.string().min(1).meta({ description: 'What the documents are compared with.' }),
    documents: z
      .array(z.string('only strings are supported'))
      .min(1)
      .max(maxDocuments)
      .meta({ description: 'The texts to put in order.' }),
    top_n: z
      .int()
      .min(1)
      .nullish()
      .meta({ description: 'How many of the most relevant documents to return; all when absent.' }),
    return_documents: z
      .boolean()
      .nullish()
      .meta({ description: 'Whether results carry the text of their document.', default: false }),
    max_chunks_per_doc: z
      .int()
      .min(1)
      .nullish()
      .meta({
        description:
          'A document that is longer than fits beside the query is split into chunks, and its score is its ' +
          "highest chunk's: at most this many from its start are scored.",
        default: 1024,
      }),
    overlap_tokens: z
      .int()
      .min(0)
      .max(maxOverlapTokens)
      .nullish()
      .meta({ description: 'How many tokens neighbouring chunks share.', default: 0 }),
  })
  .meta({ id: 'RerankRequest', description: 'Fields that are not listed are ignored.' });
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
