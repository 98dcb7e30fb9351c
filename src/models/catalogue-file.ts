import { readFile } from 'node:fs/promises';
import type { z } from 'zod';
import { type Catalogue, catalogueSchema } from './catalogue.js';
import { findJsonSyntaxError } from './json-syntax.js';

/** The catalogue file cannot be used; the message names the file and the place in it. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError';
}

/**
 * Reads the catalogue file.
 * @throws CatalogueError with a line for each thing that is wrong
 */
export async function loadCatalogue(file: string): Promise<Catalogue> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const reason = missing
      ? 'there is no such file (HEADRACE_MODELS names another)'
      : (error as Error).message;
    throw new CatalogueError(`${file}: ${reason}`, { cause: error });
  }
  const parsed = catalogueSchema.safeParse(parse(file, text));
  if (!parsed.success) {
    const lines = parsed.error.issues.flatMap(describe);
    throw new CatalogueError(lines.map((line) => `${file}: ${line}`).join('\n'));
  }
  return parsed.data;
}

function parse(file: string, text: string): unknown {
  // Some editors begin a file with a byte order mark.
  const json = text.replace(/^\uFEFF/, '');
  const error = findJsonSyntaxError(json);
  if (error) {
    throw new CatalogueError(
      `${file}: not JSON: line ${error.line}, column ${error.column}: expected ${error.expected}`,
    );
  }
  return JSON.parse(json);
}

/** A line for each thing that is wrong, with its path. */
function describe(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${formatPath([...issue.path, key])}: is not a known key`);
  }
  const path = formatPath(issue.path);
  return [path ? `${path}: ${issue.message}` : issue.message];
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (before, key) =>
      typeof key === 'number' ? `${before}[${key}]` : `${before}${before ? '.' : ''}${String(key)}`,
    '',
  );
}
