import { z } from 'zod';

/** How often a process announces itself, and after how long a silence the others take it for dead. */
export const presenceIntervalMs = 1_000;
export const presenceTimeoutMs = 5_000;

const count = z.int().nonnegative();

/** What a worker's engine counts: what it holds now, and totals since it started. */
export const engineCountersSchema = z.object({
  /** Choices that hold a slot, or encode requests that are not finished. */
  running: count,
  /** Requests that wait for a slot or for memory. */
  waiting: count,
  slots: count,
  kvBytesUsed: count,
  kvBytesBudget: count,
  /** Positions that rows of the cache hold. */
  kvPositions: count,
  /** Beginnings of prompts that are kept. */
  prefixBytesUsed: count,
  steps: count,
  prefillTokens: count,
  /** Tokens of prompts that were not read again. */
  cachedTokens: count,
  decodeTokens: count,
  /** Tokens that were run because they might be drawn next, and those of them that were. */
  draftTokens: count,
  acceptedDraftTokens: count,
  encodedTokens: count,
  cancelled: count,
});
export type EngineCounters = z.infer<typeof engineCountersSchema>;

/** What a process says of itself on the presence channel. A last word has `leaving: true`. */
export const presenceSchema = z.discriminatedUnion('role', [
  z.object({ role: z.literal('api'), id: z.string(), leaving: z.boolean() }),
  z.object({
    role: z.literal('worker'),
    id: z.string(),
    leaving: z.boolean(),
    model: z.string(),
    /** Requests the worker holds, and how many of them are past the queue of its engine. */
    held: z.int(),
    running: z.int(),
    /** As the engine counted about a second ago; absent until it has said so once. */
    engine: engineCountersSchema.optional(),
  }),
]);
export type Presence = z.infer<typeof presenceSchema>;
