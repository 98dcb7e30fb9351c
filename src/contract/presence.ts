import { z } from 'zod';

/** How often a process announces itself, and after how long a silence the others take it for dead. */
export const presenceIntervalMs = 1_000;
export const presenceTimeoutMs = 5_000;

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
  }),
]);
export type Presence = z.infer<typeof presenceSchema>;
