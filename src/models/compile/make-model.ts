import type { Manifest } from '../manifest.js';
import { type CompileOptions, compileModel } from './compile-model.js';
import { openCheckpoint } from './open-checkpoint.js';
import { adoptPublishedGraph, findPublishedGraph } from './published-graph.js';
import { hasSafetensors } from './safetensors/safetensors-folder.js';

export interface MakeOptions extends Omit<CompileOptions, 'checkpoint'> {
  /** A folder in Hugging Face layout, or a .gguf file. */
  readonly source: string;
  /** Its `hashCheckpoint`, where the caller has it. */
  readonly sha256?: string;
}

/**
 * Makes what is served of a model's published files: compiles its weights, or, of an encoder that was published as a
 * graph alone, takes that as it is.
 * @throws CheckpointError when the files cannot be used; the signal's reason when it aborts
 */
export async function makeModel({ source, sha256, ...options }: MakeOptions): Promise<Manifest> {
  const graph = (await hasSafetensors(source)) ? undefined : await findPublishedGraph(source);
  if (graph !== undefined) return adoptPublishedGraph({ source, graph, sha256, folder: options.folder });
  const checkpoint = await openCheckpoint(source, { sha256 });
  try {
    return await compileModel({ ...options, checkpoint });
  } finally {
    await checkpoint.close();
  }
}
