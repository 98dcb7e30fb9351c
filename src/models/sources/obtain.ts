import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { buildAside, downloadFolder } from '../cache.js';
import type { Source } from '../catalogue.js';
import { hashCheckpoint } from './checkpoint-files.js';
import { failureReason } from './failure-reason.js';
import { lookAtFile } from './file-source.js';
import { fetchFromHub, type HubOptions, type HubSource } from './hub-source.js';
import { fetchFromPip, type PipSource } from './pip-source.js';

export interface ObtainOptions {
  /** The model's id, for messages. */
  readonly model: string;
  /** Tried in order until one answers. */
  readonly sources: readonly Source[];
  /** The folder of the catalogue file; paths of local files start from it. */
  readonly baseFolder: string;
  readonly cacheDir: string;
  readonly hubUrl: string;
  readonly hubToken?: string;
  readonly python: string;
  /** Called while something is downloaded: `share` of `source` is here, 0..1. */
  readonly onProgress?: (source: string, share: number) => void;
  readonly signal?: AbortSignal;
  /** Of requests to the hub. */
  readonly timeouts?: HubOptions['timeouts'];
}

/** A checkpoint on this machine. */
export interface Obtained {
  /** A folder in Hugging Face layout, or a .gguf file. */
  readonly path: string;
  /** As `hashCheckpoint` has it. */
  readonly sha256: string;
  readonly source: Source;
}

/** No source of a model answered; the message says why of each, and what to do. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/**
 * Finds a model's files: those that were downloaded before, else from the first source that answers.
 * @throws SourceError when none does; the signal's reason when it aborts, with nothing half-done left behind
 */
export async function obtain(options: ObtainOptions): Promise<Obtained> {
  const signal = options.signal ?? new AbortController().signal;
  const failures: string[] = [];
  for (const source of options.sources) {
    signal.throwIfAborted();
    try {
      const found =
        source.from === 'file'
          ? await lookAtFile(source, { baseFolder: options.baseFolder, signal })
          : await download(source, { ...options, signal });
      return { ...found, source };
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`  ${sourceName(source)}: ${failureReason(error)}`);
    }
  }
  throw new SourceError(
    [
      `No source has the files of ${options.model}:`,
      ...failures,
      'To serve files that are on this machine, put a source of this form first in its "sources" in the catalogue file:',
      '  {"from": "file", "path": "/path/to/a/Hugging-Face-folder or file.gguf"}',
    ].join('\n'),
  );
}

/** How messages call a source. */
export function sourceName(source: Source): string {
  switch (source.from) {
    case 'hub':
      return `hub ${source.repository}${source.gguf ? ` ${source.gguf}` : ''}`;
    case 'pip':
      return `pip ${source.package}==${source.version}`;
    case 'file':
      return `file ${source.path}`;
    default:
      return source satisfies never;
  }
}

/** What is kept beside a download's files. */
const recordSchema = z.object({ name: z.string(), sha256: z.string() });
const recordFile = 'download.json';
const contentFolder = 'content';

async function download(
  source: HubSource | PipSource,
  options: ObtainOptions & { signal: AbortSignal },
): Promise<{ path: string; sha256: string }> {
  const folder = downloadFolder({ cacheDir: options.cacheDir, key: downloadKey(source, options.hubUrl) });
  const onProgress = (share: number) => options.onProgress?.(sourceName(source), share);
  await buildAside(folder, async (aside) => {
    const content = join(aside, contentFolder);
    await mkdir(content);
    const name =
      source.from === 'hub'
        ? await fetchFromHub(source, { ...options, folder: content, onProgress })
        : await fetchFromPip(source, { ...options, folder: content, onProgress });
    const sha256 = await hashCheckpoint(join(content, name), options.signal);
    await writeFile(join(aside, recordFile), JSON.stringify({ name, sha256, source }, null, 2));
  });
  const { name, sha256 } = await readRecord(folder);
  return { path: join(folder, contentFolder, name), sha256 };
}

async function readRecord(folder: string): Promise<z.infer<typeof recordSchema>> {
  try {
    return recordSchema.parse(JSON.parse(await readFile(join(folder, recordFile), 'utf8')));
  } catch {
    throw new Error(`${folder} is damaged; delete it to download again`);
  }
}

/** Downloads are found again by everything that decides what they hold, so that a changed pin is not overlooked. */
function downloadKey(source: HubSource | PipSource, hubUrl: string): string {
  const identity =
    source.from === 'hub'
      ? [
          hubUrl,
          source.repository,
          source.revision,
          source.gguf ?? null,
          Object.entries(source.files ?? {}).sort(),
        ]
      : [source.package, source.version, source.sha256 ?? null, source.path];
  return createHash('sha256')
    .update(JSON.stringify([source.from, identity]))
    .digest('hex');
}
