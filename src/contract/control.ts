import { z } from 'zod';

/** What an API process tells the workers of one model. */
export const controlSchema = z.discriminatedUnion('type', [
  /** The client of request `id` has gone: drop it wherever it is. */
  z.object({ type: z.literal('cancel'), id: z.string() }),
]);
export type Control = z.infer<typeof controlSchema>;
