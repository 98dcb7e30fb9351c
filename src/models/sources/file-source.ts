import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Source } from '../catalogue.js';
import { hashCheckpoint } from './checkpoint-files.js';

export type FileSource = Extract<Source, { from: 'file' }>;

/**
 * Looks at a checkpoint that is on this machine already.
 * @param baseFolder what a relative path starts from
 */
export async function lookAtFile(
  source: FileSource,
  { baseFolder, signal }: { baseFolder: string; signal: AbortSignal },
): Promise<{ path: string; sha256: string }> {
  const path = resolve(baseFolder, source.path);
  const stats = await stat(path).catch(() => undefined);
  if (!stats) {
    throw new Error(`there is nothing at ${path}`);
  }
  if (!stats.isDirectory() && !path.endsWith('.gguf')) {
    throw new Error(`${path} is neither a folder nor a .gguf file`);
  }
  const sha256 = await hashCheckpoint(path, signal);
  if (source.sha256 !== undefined && stats.isFile() && sha256 !== source.sha256) {
    throw new Error(`${path} has SHA-256 ${sha256}, not ${source.sha256}`);
  }
  return { path, sha256 };
}
