import { readFile } from 'node:fs/promises';
import type { z } from 'zod';
import { CheckpointError } from './checkpoint.js';

/** The contents of a file; undefined when there is no such file. */
export async function readTextIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return undefined;
    }
    throw new CheckpointError(`${path}: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * A JSON file of a checkpoint, parsed; undefined when there is no such file.
 * @throws CheckpointError naming the file and the place in it.
 */
export async function readJsonIfPresent<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): Promise<z.infer<Schema> | undefined> {
  const text = await readTextIfPresent(path);
  return text === undefined ? undefined : parseJson(path, text, schema);
}

/** The same for a file that must be there. @throws CheckpointError */
export async function readJson<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): Promise<z.infer<Schema>> {
  const text = await readTextIfPresent(path);
  if (text === undefined) {
    throw new CheckpointError(`${path}: is missing`);
  }
  return parseJson(path, text, schema);
}

/** Parses JSON that came from `path`. @throws CheckpointError naming the file and the place in it. */
export function parseJson<Schema extends z.ZodType>(
  path: string,
  text: string,
  schema: Schema,
): z.infer<Schema> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new CheckpointError(`${path}: not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new CheckpointError(`${path}: ${[...issue.path, issue.message].join(': ')}`);
  }
  return parsed.data;
}
