import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Files of a Hugging Face folder that are read or compiled; everything else in a repository is left there. */
const wanted: readonly RegExp[] = [
  /^config\.json$/,
  /^generation_config\.json$/,
  /^tokenizer[^/]*$/,
  /^special_tokens_map\.json$/,
  /^chat_template\.jinja$/,
  /^sentence_bert_config\.json$/,
  /^1_Pooling\/config\.json$/,
  /^model(-\d+-of-\d+)?\.safetensors$/,
  /^model\.safetensors\.index\.json$/,
];

/** Where authors put the graph of an encoder, the preferred place first. */
export const publishedGraphs = ['model.onnx', 'onnx/model.onnx'] as const;

/**
 * Those of the paths inside a Hugging Face folder, with forward slashes, that a checkpoint is read from: a graph only
 * where there are no weights to compile.
 */
export function checkpointFiles(paths: readonly string[]): string[] {
  const files = paths.filter((path) => wanted.some((pattern) => pattern.test(path)));
  if (files.some((path) => path.endsWith('.safetensors'))) return files;
  const graph = publishedGraphs.find((path) => paths.includes(path));
  // Weights beside it have its name and a suffix that exporters do not agree on.
  return graph === undefined ? files : [...files, ...paths.filter((path) => path.startsWith(graph))];
}

/** SHA-256 of a file, as hexadecimal digits. */
export async function hashFile(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024, signal })) {
    hash.update(chunk as Buffer);
  }
  return hash.digest('hex');
}

/**
 * SHA-256 over a checkpoint: of a GGUF file, the file's own; of a folder, that of the list of its checkpoint files
 * and their hashes, so that files which are not read do not matter.
 */
export async function hashCheckpoint(path: string, signal?: AbortSignal): Promise<string> {
  if ((await stat(path)).isFile()) {
    return hashFile(path, signal);
  }
  const entries = await readdir(path, { recursive: true });
  const files = checkpointFiles(entries.map((entry) => entry.replaceAll('\\', '/')));
  const list = createHash('sha256');
  for (const file of files.sort()) {
    list.update(`${file}\0${await hashFile(join(path, file), signal)}\n`);
  }
  return list.digest('hex');
}
