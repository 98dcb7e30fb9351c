import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileModel } from '../../../src/models/compile/compile-model.js';
import { openCheckpoint } from '../../../src/models/compile/open-checkpoint.js';
import type { Manifest, WeightFormat } from '../../../src/models/manifest.js';
import { measureStates } from '../../../src/worker/measure-states.js';

/** A fixture model compiled into a folder of its own. */
export interface CompiledFixture {
  readonly folder: string;
  readonly manifest: Manifest;
  remove(): Promise<void>;
}

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));

/** @param name folder below test/fixtures: `decoder/llama-tied` */
export async function compileFixture(name: string, weights: WeightFormat): Promise<CompiledFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'headrace-engine-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  const checkpoint = await openCheckpoint(join(fixtures, name));
  try {
    const manifest = await compileModel({ checkpoint, weights, folder, measureStates });
    return { folder, manifest, remove };
  } catch (error) {
    await remove();
    throw error;
  } finally {
    await checkpoint.close();
  }
}

/** The reference values beside a fixture. */
export async function readExpected<T>(name: string): Promise<T> {
  return JSON.parse(await readFile(join(fixtures, name, 'expected.json'), 'utf8')) as T;
}
