import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { BatchBuilder } from '../../../src/engine/batch.js';
import type { DecoderShape } from '../../../src/engine/decoder-runner.js';
import { KvCache } from '../../../src/engine/kv-cache.js';
import { OnnxDecoderRunner } from '../../../src/engine/onnx-decoder-runner.js';
import { OnnxSession } from '../../../src/engine/onnx-session.js';
import type { Checkpoint } from '../../../src/models/compile/checkpoint.js';
import { compileModel } from '../../../src/models/compile/compile-model.js';
import { openCheckpoint } from '../../../src/models/compile/open-checkpoint.js';
import { compiledFiles, type WeightFormat } from '../../../src/models/manifest.js';
import { measureStates } from '../../../src/worker/measure-states.js';
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
  const manifest = await compileModel({ checkpoint, weights, folder, measureStates });
  const session = await OnnxSession.open(join(folder, compiledFiles.graph), { threads: 1 });
  onTestFinished(() => session.close());
  return { manifest, session };
}

/**
 * Runs `tokens` of one sequence after what `cache` holds of it, which is then longer by them; returns the last row's
 * logits.
 */
export async function extend(
  { session, shape }: { session: OnnxSession; shape: DecoderShape },
  tokens: readonly number[],
  cache = new KvCache({ shape, slots: 1, contextLength: 64, maxBytes: 2 ** 20 }),
): Promise<{ logits: Float32Array; cache: KvCache }> {
  const cached = cache.length(0);
  cache.fit({ rows: 1, longest: cached + tokens.length, limit: 64 });
  const batch = new BatchBuilder().build([{ cached, tokens }]);
  const output = await new OnnxDecoderRunner(session, shape).run({ ...batch, cache: cache.view(0, 1) });
  cache.advance(0, tokens.length);
  return { logits: output.whole.logits, cache };
}
