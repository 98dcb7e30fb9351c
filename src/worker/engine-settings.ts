import { availableParallelism, totalmem } from 'node:os';
import type { EngineSettings, JudgeTokens } from '../engine/engine.js';
import { bytesPerPosition } from '../engine/kv-cache.js';
import type { CatalogueModel } from '../models/catalogue.js';
import type { Manifest } from '../models/manifest.js';
import type { Config } from '../platform/config.js';

/**
 * Tokens of prefill, or of an encoder's batch, in one step: a longer step would keep the other requests' next token
 * waiting, and a cancelled request in its slot. Encoders compute sequences that are longer than a batch in another way
 * than those that share one (`encoder-graph.ts`).
 */
export const maxBatchTokens = { decoder: 448, encoder: 512 } as const;

/**
 * Tokens between the cuts of a prompt. Longer chunks read a long prompt quicker, since each run costs 8 ms for a 30-layer model
 * however short it is; shorter ones find more of a prompt that begins like an earlier one.
 */
export const chunkTokens = 128;

/** Positions of one sequence that are served: what the catalogue says, and at most what the model was made for. */
export function servedContext(manifest: Manifest, entry: CatalogueModel): number {
  return Math.min(manifest.contextLength, entry.contextLength ?? Number.POSITIVE_INFINITY);
}

/** How the engine of one model is to run on this machine. */
export function engineSettings(options: {
  folder: string;
  manifest: Manifest;
  entry: CatalogueModel;
  config: Pick<Config, 'maxSequences'>;
  /** Of a decoder that judges documents. */
  judge?: JudgeTokens | undefined;
}): EngineSettings {
  const { folder, manifest, entry, config, judge } = options;
  const kind = judge ? 'encoder' : manifest.kind;
  const contextLength = servedContext(manifest, entry);
  const kv = manifest.kind === 'decoder' && !judge ? kvBytes(manifest, entry, contextLength) : 0;
  return {
    folder,
    maxSequences: config.maxSequences,
    contextLength,
    kvBytes: kv,
    prefixBytes: Math.floor(kv / 8),
    chunkTokens,
    maxBatchTokens: maxBatchTokens[kind],
    threads: entry.threads ?? availableParallelism(),
    provider: entry.provider,
    judge,
  };
}

/** A quarter of the memory unless the catalogue says otherwise, and never less than one full sequence takes. */
function kvBytes(
  manifest: Manifest & { kind: 'decoder' },
  entry: CatalogueModel,
  contextLength: number,
): number {
  const budget = entry.kvMiB === undefined ? memoryBytes() / 4 : entry.kvMiB * 1024 * 1024;
  return Math.max(Math.floor(budget), contextLength * bytesPerPosition(manifest));
}

/** What this process may use: the machine's memory, or its container's limit. */
function memoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
