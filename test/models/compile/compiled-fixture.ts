import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { OnnxSession, type Tensor } from '../../../src/engine/onnx-session.js';
import type { Checkpoint } from '../../../src/models/compile/checkpoint.js';
import { compileModel } from '../../../src/models/compile/compile-model.js';
import { openCheckpoint } from '../../../src/models/compile/open-checkpoint.js';
import { compiledFiles, type DecoderManifest, type WeightFormat } from '../../../src/models/manifest.js';
import { temporaryFolder } from '../temporary-folder.js';

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));

/** A fixture's checkpoint, closed when the test ends. */
export async function openFixture(name: string): Promise<Checkpoint> {
  const checkpoint = await openCheckpoint(join(fixtures, name));
  onTestFinished(() => checkpoint.close());
  return checkpoint;
}

/** The same checkpoint with another configuration. */
export function overridden(checkpoint: Checkpoint, changes: object): Checkpoint {
  return {
    ...checkpoint,
    config: { ...checkpoint.config, ...changes } as Checkpoint['config'],
    tokenizerJson: checkpoint.tokenizerJson,
    has: (tensor) => checkpoint.has(tensor),
    shape: (tensor) => checkpoint.shape(tensor),
    read: (tensor, shape) => checkpoint.read(tensor, shape),
    close: () => checkpoint.close(),
  };
}

/** Compiles a checkpoint and loads it; both are gone when the test ends. */
export async function compiled(checkpoint: Checkpoint, weights: WeightFormat) {
  const folder = await temporaryFolder();
  const manifest = await compileModel({ checkpoint, weights, folder });
  const session = await OnnxSession.open(join(folder, compiledFiles.graph), { threads: 1 });
  onTestFinished(() => session.close());
  return { manifest, session };
}

/** Keys and values by input name, [kvHeads, T, headSize] each. */
export type Cache = ReadonlyMap<string, Float32Array>;

/** Runs `tokens` of one sequence after `cached` positions; returns the last row's logits and the longer cache. */
export async function extend(
  {
    session,
    manifest,
  }: { session: OnnxSession; manifest: Pick<DecoderManifest, 'heads' | 'kvHeads' | 'headSize' | 'layers'> },
  tokens: readonly number[],
  { cached, cache }: { cached: number; cache: Cache } = { cached: 0, cache: new Map() },
): Promise<{ logits: Float32Array; cached: number; cache: Cache }> {
  const { heads, kvHeads, headSize, layers } = manifest;
  const added = tokens.length;
  const length = cached + added;
  const rows = (heads / kvHeads) * added;
  const mask = Float32Array.from({ length: rows * length }, (_, at) => {
    const column = at % length;
    return column >= added || column <= Math.floor(at / length) % added ? 0 : -1e9;
  });
  const int64 = (values: readonly number[], dims: number[]): Tensor => ({
    type: 'int64',
    data: BigInt64Array.from(values, BigInt),
    dims,
  });
  const feeds: Record<string, Tensor> = {
    input_ids: int64(tokens, [1, added]),
    position_ids: int64(
      tokens.map((_, at) => cached + at),
      [1, added],
    ),
    mask: { type: 'float32', data: mask, dims: [1, 1, rows, length] },
    last: int64([added - 1], [1]),
  };
  const names = Array.from({ length: layers }, (_, layer) => [`${layer}.key`, `${layer}.value`]).flat();
  for (const name of names) {
    const data = cache.get(name) ?? new Float32Array(0);
    feeds[`past.${name}`] = { type: 'float32', data, dims: [1, kvHeads, cached, headSize] };
  }
  const outputs = await session.run(feeds);
  const longer = new Map<string, Float32Array>();
  for (const name of names) {
    const old = cache.get(name) ?? new Float32Array(0);
    const fresh = outputs[`new.${name}`]!.data as Float32Array;
    const joined = new Float32Array(old.length + fresh.length);
    for (let head = 0; head < kvHeads; head++) {
      const part = (array: Float32Array, size: number) =>
        array.subarray(head * size * headSize, (head + 1) * size * headSize);
      joined.set(part(old, cached), head * length * headSize);
      joined.set(part(fresh, added), (head * length + cached) * headSize);
    }
    longer.set(name, joined);
  }
  return { logits: outputs.logits!.data as Float32Array, cached: length, cache: longer };
}
