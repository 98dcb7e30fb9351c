import { access } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { CheckpointError } from '../checkpoint.js';
import { readJson } from '../json-file.js';
import { SafetensorsFile } from './safetensors-file.js';

const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

const singleFile = 'model.safetensors';
const indexFile = 'model.safetensors.index.json';

/** Whether a folder has weights in safetensors, whole or in shards. */
export async function hasSafetensors(folder: string): Promise<boolean> {
  return (await exists(join(folder, singleFile))) || (await exists(join(folder, indexFile)));
}

/** The safetensors files of a Hugging Face folder, seen as one: `model.safetensors`, or shards and their index. */
export class SafetensorsFolder {
  readonly #files: readonly SafetensorsFile[];
  readonly #owners: ReadonlyMap<string, SafetensorsFile>;

  private constructor(files: readonly SafetensorsFile[], owners: ReadonlyMap<string, SafetensorsFile>) {
    this.#files = files;
    this.#owners = owners;
  }

  /** @throws CheckpointError when there are no safetensors files, or one is missing or broken. */
  static async open(folder: string): Promise<SafetensorsFolder> {
    const single = join(folder, singleFile);
    if (await exists(single)) {
      const file = await SafetensorsFile.open(single);
      return new SafetensorsFolder([file], new Map(file.names.map((name) => [name, file])));
    }
    const index = join(folder, indexFile);
    if (await exists(index)) {
      return SafetensorsFolder.#openShards(folder, index);
    }
    throw new CheckpointError(
      `${folder}: neither ${singleFile} nor ${indexFile} is there (other weight files are not read)`,
    );
  }

  static async #openShards(folder: string, index: string): Promise<SafetensorsFolder> {
    const { weight_map: weightMap } = await readJson(index, indexSchema);
    const files = new Map<string, SafetensorsFile>();
    const owners = new Map<string, SafetensorsFile>();
    try {
      for (const [tensor, shard] of Object.entries(weightMap)) {
        if (basename(shard) !== shard) {
          throw new CheckpointError(`${index}: ${shard} is not a file name`);
        }
        const file = files.get(shard) ?? (await SafetensorsFile.open(join(folder, shard)));
        files.set(shard, file);
        file.shape(tensor);
        owners.set(tensor, file);
      }
    } catch (error) {
      await Promise.all([...files.values()].map((file) => file.close()));
      throw error;
    }
    return new SafetensorsFolder([...files.values()], owners);
  }

  get names(): readonly string[] {
    return [...this.#owners.keys()];
  }

  /** The file that holds a tensor; undefined when none does. */
  owner(tensor: string): SafetensorsFile | undefined {
    return this.#owners.get(tensor);
  }

  async close(): Promise<void> {
    await Promise.all(this.#files.map((file) => file.close()));
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
