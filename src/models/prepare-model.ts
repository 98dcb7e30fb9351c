import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { buildAside, compiledFolder } from './cache.js';
import type { CatalogueModel, Source } from './catalogue.js';
import { makeModel } from './compile/make-model.js';
import type { MeasureStates } from './compile/measure-states.js';
import { type Manifest, manifestFormat, readManifest } from './manifest.js';
import { checkpointFiles } from './sources/checkpoint-files.js';
import { type Obtained, obtain } from './sources/obtain.js';

/** What names a model of a catalogue in the cache. */
export interface CachedModelOptions {
  readonly entry: CatalogueModel;
  /** The path of the catalogue file: local sources are relative to its folder. */
  readonly catalogueFile: string;
  readonly cacheDir: string;
  readonly hubUrl: string;
}

export interface PrepareOptions extends CachedModelOptions {
  readonly hubToken?: string;
  readonly python: string;
  readonly measureStates: MeasureStates;
  readonly onProgress?: (progress: PrepareProgress) => void;
  readonly signal: AbortSignal;
}

export interface PrepareProgress {
  readonly stage: 'downloading' | 'compiling';
  /** 0..1. */
  readonly share: number;
}

/** A compiled model in the cache. */
export interface PreparedModel {
  readonly folder: string;
  readonly manifest: Manifest;
}

/**
 * Obtains and compiles a model of the catalogue, or finds that done. Any number of processes may do so at once.
 * @throws SourceError when no source answers, CheckpointError when the files cannot be compiled; the signal's
 * reason when it aborts
 */
export async function prepareModel(options: PrepareOptions): Promise<PreparedModel> {
  const known = await findPreparedModel(options);
  if (known !== undefined) return known;

  const { entry, cacheDir, onProgress, signal } = options;
  const { path, sha256 } = await obtainModel(options);
  const folder = compiledFolder({ cacheDir, checkpointSha256: sha256, weights: entry.weights });
  await buildAside(folder, async (aside) => {
    onProgress?.({ stage: 'compiling', share: 0 });
    await makeModel({
      source: path,
      sha256,
      weights: entry.weights,
      measureStates: options.measureStates,
      folder: aside,
      onProgress: (share) => onProgress?.({ stage: 'compiling', share }),
      signal,
    });
  });
  await remember(options, folder);
  return { folder, manifest: await readManifest(folder) };
}

/** Obtains the files of a model of the catalogue and leaves it at that. */
export async function obtainModel(options: PrepareOptions): Promise<Obtained> {
  const { entry, catalogueFile, onProgress } = options;
  return await obtain({
    ...options,
    model: entry.id,
    sources: entry.sources,
    baseFolder: dirname(catalogueFile),
    onProgress: (_source, share) => onProgress?.({ stage: 'downloading', share }),
  });
}

/** The compiled model when it is in the cache, made from the sources as they are now. */
export async function findPreparedModel(options: CachedModelOptions): Promise<PreparedModel | undefined> {
  const record = await readRecord(await recordPath(options));
  if (record === undefined) return undefined;
  const folder = join(options.cacheDir, 'compiled', record.folder);
  const isThere = (await unlessMissing(stat(folder))) !== undefined;
  return isThere ? { folder, manifest: await readManifest(folder) } : undefined;
}

/**
 * Which compiled folder came of a catalogue entry's sources. Remembering it spares a start from asking sources that
 * did not answer the last time, and from hashing hundreds of megabytes.
 */
const recordSchema = z.object({ folder: z.string() });
type PreparedRecord = z.infer<typeof recordSchema>;

async function readRecord(path: string): Promise<PreparedRecord | undefined> {
  try {
    return recordSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    // Not there, or cut short when the machine lost power: it is only a shortcut.
    return undefined;
  }
}

async function remember(options: CachedModelOptions, folder: string): Promise<void> {
  const path = await recordPath(options);
  await mkdir(dirname(path), { recursive: true });
  const aside = `${path}.${randomUUID()}`;
  await writeFile(aside, JSON.stringify({ folder: basename(folder) } satisfies PreparedRecord));
  await rename(aside, path);
}

/** Records are named by everything that decides what they say. */
async function recordPath({ entry, catalogueFile, cacheDir, hubUrl }: CachedModelOptions): Promise<string> {
  const sources = await Promise.all(
    entry.sources.map((source) => fingerprint(source, { baseFolder: dirname(catalogueFile), hubUrl })),
  );
  const identity = JSON.stringify([manifestFormat, entry.weights, sources]);
  return join(cacheDir, 'prepared', `${createHash('sha256').update(identity).digest('hex')}.json`);
}

async function fingerprint(
  source: Source,
  { baseFolder, hubUrl }: { baseFolder: string; hubUrl: string },
): Promise<unknown> {
  switch (source.from) {
    case 'hub':
      return [hubUrl, source];
    case 'pip':
      return source;
    case 'file': {
      const path = resolve(baseFolder, source.path);
      return [path, source, await fingerprintFiles(path)];
    }
    default:
      return source satisfies never;
  }
}

/** Names, sizes and times of a local checkpoint's files: what tells a changed one without reading it. */
async function fingerprintFiles(path: string): Promise<unknown> {
  const stats = await unlessMissing(stat(path));
  if (stats === undefined) return null;
  if (!stats.isDirectory()) return [stats.size, stats.mtimeMs, stats.ino];
  const names = (await readdir(path, { recursive: true })).map((name) => name.replaceAll('\\', '/'));
  return await Promise.all(
    checkpointFiles(names)
      .sort()
      .map(async (name) => [name, await fingerprintFiles(join(path, name))]),
  );
}

/** What `reading` gives, or undefined when there is nothing to read. */
async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
