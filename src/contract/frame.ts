import { z } from 'zod';
import { finishReasonSchema, logprobSchema, toolCallDeltaSchema } from './chat.js';
import { errorKindSchema } from './errors.js';

/**
 * What a worker tells the API process that waits for request `id`.
 *
 * The frames of one attempt are numbered from 0 without a gap: `started` is number 0, then any number of `delta`
 * and `finish`, then exactly one of `done`, `ranked`, `failed` or `cancelled`. A job that is run again (its worker died) begins
 * anew with `started`, `attempt` raised and numbers from 0. A receiver that sees a number skipped has lost text
 * and fails the request.
 */
const address = {
  id: z.string(),
  /** 1 for the first run of the job. */
  attempt: z.int().min(1),
  sequence: z.int().min(0),
};

/** How long the parts took, in milliseconds, measured by the worker. */
export const timingsSchema = z.object({
  queueMs: z.number(),
  /** From enqueueing to the first token or score; null when there was none. */
  firstTokenMs: z.number().nullable(),
  totalMs: z.number(),
});
export type Timings = z.infer<typeof timingsSchema>;

/** Tokens the worker spent on the request so far. */
export const spentSchema = z.object({
  promptTokens: z.int(),
  completionTokens: z.int(),
  cachedTokens: z.int(),
});
export type Spent = z.infer<typeof spentSchema>;

export const frameSchema = z.discriminatedUnion('type', [
  /** A worker holds the job. */
  z.object({ type: z.literal('started'), ...address, workerId: z.string(), queueMs: z.number() }),
  /**
   * More of a choice: text for the reader, calls of tools, or both; `text` may be empty when only the others are new.
   * `tokens` were spent on it.
   */
  z.object({
    type: z.literal('delta'),
    ...address,
    choice: z.int(),
    text: z.string(),
    tokens: z.int(),
    logprobs: z.array(logprobSchema).optional(),
    /** Of each call first its index, id and name, then the text of its arguments in pieces. */
    toolCalls: z.array(toolCallDeltaSchema).optional(),
  }),
  /** A choice has ended. */
  z.object({ type: z.literal('finish'), ...address, choice: z.int(), reason: finishReasonSchema }),
  /** Every choice has ended. */
  z.object({ type: z.literal('done'), ...address, spent: spentSchema, timings: timingsSchema }),
  /** The score of each document, in the order of the request. */
  z.object({
    type: z.literal('ranked'),
    ...address,
    scores: z.array(z.number()),
    spent: spentSchema,
    timings: timingsSchema,
  }),
  /** The request cannot be answered. `message` is for the client. */
  z.object({
    type: z.literal('failed'),
    ...address,
    error: errorKindSchema,
    message: z.string(),
    /** When it may be tried again, where that is known. */
    retryAfterSeconds: z.int().optional(),
    spent: spentSchema,
  }),
  /** The worker has dropped the request because it was told to; what was spent until then still counts. */
  z.object({ type: z.literal('cancelled'), ...address, spent: spentSchema, timings: timingsSchema }),
]);
export type Frame = z.infer<typeof frameSchema>;

/** One message on a reply channel: the frames of one engine step that go to the same API process. */
export const frameMessageSchema = z.object({ frames: z.array(frameSchema) });
