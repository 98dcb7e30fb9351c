import { z } from 'zod';

/** One model as `GET /v1/models` shows it. */
export const modelSchema = z
  .object({
    id: z.string(),
    object: z.literal('model'),
    created: z.int(),
    owned_by: z.string(),
    type: z.literal('text'),
    sub_type: z.enum(['chat', 'reranker']),
    context_length: z.int().optional().meta({ description: 'Tokens, when the catalogue limits them.' }),
    capabilities: z.array(z.string()),
  })
  .meta({ id: 'Model' });
export type Model = z.infer<typeof modelSchema>;

export const modelListSchema = z
  .object({ object: z.literal('list'), data: z.array(modelSchema) })
  .meta({ id: 'ModelList' });
export type ModelList = z.infer<typeof modelListSchema>;
