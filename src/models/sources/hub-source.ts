import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileDownloadInfo, type ListFileEntry, listFiles } from '@huggingface/hub';
import type { Source } from '../catalogue.js';
import { checkpointFiles } from './checkpoint-files.js';
import { timedFetch } from './timed-fetch.js';

export type HubSource = Extract<Source, { from: 'hub' }>;

export interface HubOptions {
  /** The hub's address; mirrors answer under others. */
  readonly hubUrl: string;
  readonly hubToken?: string;
  /** An existing empty folder. */
  readonly folder: string;
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
  readonly timeouts?: { readonly answerMs: number; readonly pauseMs: number };
}

const defaultTimeouts = { answerMs: 15_000, pauseMs: 60_000 };

interface WantedFile {
  readonly path: string;
  readonly size: number;
  /** Pinned, or as the hub publishes it for large files. */
  readonly sha256: string | undefined;
}

/**
 * Downloads what a checkpoint is read from: the files of a Hugging Face folder, or the one GGUF file.
 * @returns the name of the GGUF file in `folder`, or an empty string when the folder itself is the checkpoint
 */
export async function fetchFromHub(source: HubSource, options: HubOptions): Promise<string> {
  const { hubToken, folder, onProgress, signal } = options;
  const hubUrl = options.hubUrl.replace(/\/+$/, '');
  const request = timedFetch({
    signal,
    ...(options.timeouts ?? defaultTimeouts),
    token: hubToken,
    origin: hubUrl,
  });
  const at = { repo: source.repository, revision: source.revision, hubUrl, fetch: request };
  const entries = new Map<string, ListFileEntry>();
  for await (const entry of listFiles({ ...at, recursive: true })) {
    entries.set(entry.path, entry);
  }
  const files = wantedFiles(source, entries);
  const total = files.reduce((sum, { size }) => sum + size, 0);
  let received = 0;
  for (const file of files) {
    const info = await fileDownloadInfo({ ...at, path: file.path });
    if (!info) {
      throw new Error(`${file.path} is listed but not there`);
    }
    const response = await request(info.url);
    if (!response.ok || !response.body) {
      throw new Error(`${file.path}: HTTP ${response.status}`);
    }
    const path = join(folder, source.gguf ? basename(file.path) : file.path);
    await mkdir(dirname(path), { recursive: true });
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
    await store(body, path, file, (bytes) => {
      received += bytes;
      onProgress(total === 0 ? 1 : Math.min(1, received / total));
    });
  }
  return source.gguf ? basename(source.gguf) : '';
}

function wantedFiles(source: HubSource, entries: ReadonlyMap<string, ListFileEntry>): WantedFile[] {
  const present = [...entries.values()].filter(({ type }) => type === 'file').map(({ path }) => path);
  const pins = source.files ?? {};
  const wanted = source.gguf ? [source.gguf] : folderFiles(present);
  for (const path of new Set([...wanted, ...Object.keys(pins)])) {
    if (!present.includes(path)) {
      throw new Error(`the repository has no file ${path}`);
    }
  }
  return wanted.map((path) => {
    const { size, lfs } = entries.get(path)!;
    return { path, size: lfs?.size ?? size, sha256: pins[path] ?? lfs?.oid };
  });
}

/** Where weights are there both in one file and in shards, the one file is enough. */
function folderFiles(present: readonly string[]): string[] {
  const files = checkpointFiles(present);
  const weights = files.filter((path) => path.includes('.safetensors'));
  for (const [what, there] of [
    ['config.json', files.includes('config.json')],
    ['safetensors, and no model.onnx', weights.length > 0 || files.some((path) => path.endsWith('.onnx'))],
  ] as const) {
    if (!there) {
      throw new Error(`the repository has no ${what}`);
    }
  }
  return weights.includes('model.safetensors')
    ? files.filter((path) => path === 'model.safetensors' || !weights.includes(path))
    : files;
}

async function store(
  body: Readable,
  path: string,
  file: WantedFile,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const hash = createHash('sha256');
  let size = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      size += chunk.length;
      onBytes(chunk.length);
      done(null, chunk);
    },
  });
  await pipeline(body, count, createWriteStream(path, { flags: 'wx' }));
  if (size !== file.size) {
    throw new Error(`${file.path} came as ${size} bytes, not ${file.size}`);
  }
  const sha256 = hash.digest('hex');
  if (file.sha256 !== undefined && sha256 !== file.sha256) {
    throw new Error(`${file.path} has SHA-256 ${sha256}, not ${file.sha256}`);
  }
}
