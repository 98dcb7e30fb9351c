import type { z } from 'zod';

/**
 * Parses what was given on the command line as the service parses requests.
 * @throws Error naming what is wrong.
 */
export function parseInput<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${issue!.path.join('.')}: ${issue!.message}`);
}
