import { hashFile } from '../../sources/checkpoint-files.js';
import { type Checkpoint, CheckpointError, type DecoderConfig } from '../checkpoint.js';
import { readGgufConfig } from './gguf-config.js';
import { GgufFile } from './gguf-file.js';
import type { GgufMetadata } from './gguf-metadata.js';
import { type GgufTokens, readGgufTokens } from './gguf-tokenizer.js';
import { ggufTensorName } from './tensor-names.js';

/** A .gguf file of the llama family, seen as its Hugging Face folder would be. */
export class GgufCheckpoint implements Checkpoint {
  readonly sha256: string;
  readonly config: DecoderConfig;
  readonly tokenizerJson: string;
  readonly endTokens: readonly number[];
  readonly chatTemplate: string | null;
  readonly beginText: string | null;
  readonly endText: string | null;
  readonly generation: Checkpoint['generation'];
  readonly #file: GgufFile;

  private constructor(file: GgufFile, sha256: string, config: DecoderConfig, tokens: GgufTokens) {
    this.sha256 = sha256;
    this.config = config;
    this.tokenizerJson = tokens.tokenizerJson;
    this.endTokens = tokens.endTokens;
    this.chatTemplate = tokens.chatTemplate;
    this.beginText = tokens.beginText;
    this.endText = tokens.endText;
    this.generation = readSampling(file.metadata);
    this.#file = file;
  }

  /**
   * @param sha256 the file's hash, where the caller knows it already
   * @throws CheckpointError when the file is broken or holds something that is not supported.
   */
  static async open(path: string, sha256?: string): Promise<GgufCheckpoint> {
    const file = await GgufFile.open(path);
    try {
      const config = await readGgufConfig(file);
      const tokens = readGgufTokens(file.metadata);
      if (tokens.count > config.vocabularySize) {
        throw new CheckpointError(
          `${path}: ${tokens.count} tokens do not fit an embedding table of ${config.vocabularySize} rows`,
        );
      }
      return new GgufCheckpoint(file, sha256 ?? (await hashFile(path)), config, tokens);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  has(tensor: string): boolean {
    const name = ggufTensorName(tensor);
    return name !== undefined && this.#file.has(name);
  }

  shape(tensor: string): readonly number[] {
    return this.#file.shape(this.#stored(tensor));
  }

  async read(tensor: string, shape: readonly number[]): Promise<Float32Array> {
    const name = this.#stored(tensor);
    const stored = this.#file.shape(name);
    if (stored.join() !== shape.join()) {
      throw new CheckpointError(
        `${this.#file.path}: tensor ${name} is [${stored}], but the configuration asks for [${shape}]`,
      );
    }
    const values = await this.#file.read(name);
    const permuted = this.config.architecture === 'llama' && /\.attn_[qk]\.weight$/.test(name);
    return permuted ? unpermute(values, stored, this.config.headSize) : values;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  #stored(tensor: string): string {
    const name = ggufTensorName(tensor);
    if (name === undefined || !this.#file.has(name)) {
      throw new CheckpointError(`${this.#file.path}: tensor ${name ?? tensor} is missing`);
    }
    return name;
  }
}

/**
 * Llama's converter interleaves the rows of each query and key head, so that a rotary pair is two neighbours; in
 * Hugging Face's order the pair of row i is row i + headSize / 2.
 */
function unpermute(values: Float32Array, [rows = 0, columns = 0]: readonly number[], headSize: number) {
  const ordered = new Float32Array(values.length);
  for (let row = 0; row < rows; row += 1) {
    const inHead = row % headSize;
    const from = row - inHead + (inHead % (headSize / 2)) * 2 + (inHead < headSize / 2 ? 0 : 1);
    ordered.set(values.subarray(from * columns, (from + 1) * columns), row * columns);
  }
  return ordered;
}

function readSampling(metadata: GgufMetadata): Checkpoint['generation'] {
  const topK = metadata.number('general.sampling.top_k');
  return {
    temperature: metadata.number('general.sampling.temp'),
    topP: metadata.number('general.sampling.top_p'),
    topK: topK === 0 ? -1 : topK,
  };
}
