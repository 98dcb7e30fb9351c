import { stat } from 'node:fs/promises';
import { type Checkpoint, CheckpointError } from './checkpoint.js';
import { GgufCheckpoint } from './gguf/gguf-checkpoint.js';
import { HuggingFaceCheckpoint } from './hugging-face-checkpoint.js';

/**
 * Opens a model's published files: a folder in Hugging Face layout, or a .gguf file.
 * @param known `sha256` is that of `hashCheckpoint`, where the caller has it already and the files need not be hashed
 * @throws CheckpointError when there is nothing at `path`, or nothing that can be compiled; it says what is wrong.
 */
export async function openCheckpoint(path: string, known: { sha256?: string } = {}): Promise<Checkpoint> {
  const stats = await stat(path).catch((error: Error) => {
    throw new CheckpointError(`${path}: ${error.message}`, { cause: error });
  });
  if (stats.isDirectory()) {
    return HuggingFaceCheckpoint.open(path, known.sha256);
  }
  if (path.endsWith('.gguf')) {
    return GgufCheckpoint.open(path, known.sha256);
  }
  throw new CheckpointError(`${path}: neither a folder nor a .gguf file`);
}
