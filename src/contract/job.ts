import { z } from 'zod';
import { messageSchema, responseFormatSchema, toolChoiceSchema, toolSchema } from './chat.js';

/** What every job says, whatever it asks for. Times are Unix milliseconds. */
const envelope = {
  /** The request's id; also the job's id in the queue, and `id` in the reply. */
  id: z.string(),
  /** The id of the API process that waits; `replyChannel(replyTo)` is where frames go. */
  replyTo: z.string(),
  model: z.string(),
  enqueuedAt: z.number(),
  /** After this the client has been answered with `deadlineExceeded`: running it would be waste. */
  deadlineAt: z.number(),
  /** Who pays, for the worker to write down should that process die. Ids only: a job holds no secret. */
  caller: z.object({ accountId: z.string(), keyId: z.string(), endUser: z.string().nullable() }).optional(),
  /** Tokens that its account has set aside for it; whoever runs it asks before it uses more. Absent: any number. */
  reservedTokens: z.int().optional(),
  /** For the batch tier: waits behind every interactive request, in the queue and in the engine. */
  priority: z.enum(['interactive', 'batch']),
};

/**
 * A chat request with aliases resolved and the catalogue's defaults applied. A sampling field that is absent takes
 * the model's own default (its generation_config) and then the contract's, which only the worker can know.
 */
export const chatJobSchema = z.object({
  ...envelope,
  kind: z.literal('chat'),
  messages: z.array(messageSchema),
  maxTokens: z.int().min(1).optional(),
  stop: z.array(z.string()),
  temperature: z.number().optional(),
  topP: z.number().optional(),
  topK: z.int().optional(),
  minP: z.number().optional(),
  frequencyPenalty: z.number().optional(),
  presencePenalty: z.number().optional(),
  seed: z.int().optional(),
  n: z.int().min(1),
  /** Absent: no log-probabilities. 0: of the chosen token only. */
  topLogprobs: z.int().min(0).max(20).optional(),
  logitBias: z.record(z.string(), z.number()).optional(),
  responseFormat: responseFormatSchema.optional(),
  tools: z.array(toolSchema).optional(),
  toolChoice: toolChoiceSchema.optional(),
  parallelToolCalls: z.boolean().optional(),
});
export type ChatJob = z.infer<typeof chatJobSchema>;

/** A rerank request with the contract's defaults applied. */
export const rerankJobSchema = z.object({
  ...envelope,
  kind: z.literal('rerank'),
  query: z.string(),
  documents: z.array(z.string()),
  maxChunksPerDoc: z.int().min(1),
  overlapTokens: z.int().min(0),
});
export type RerankJob = z.infer<typeof rerankJobSchema>;

export const jobSchema = z.discriminatedUnion('kind', [chatJobSchema, rerankJobSchema]);
export type Job = z.infer<typeof jobSchema>;
