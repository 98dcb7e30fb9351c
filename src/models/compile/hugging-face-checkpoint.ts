import { join } from 'node:path';
import { hashCheckpoint } from '../sources/checkpoint-files.js';
import { type Checkpoint, CheckpointError, type ModelConfig } from './checkpoint.js';
import { readEncoderLimits } from './encoder-limits.js';
import { readHuggingFaceConfig } from './hugging-face-config.js';
import { type HuggingFaceTokens, readHuggingFaceTokens } from './hugging-face-tokens.js';
import { readTextIfPresent } from './json-file.js';
import { SafetensorsFolder } from './safetensors/safetensors-folder.js';

/** A folder in Hugging Face layout: config.json, safetensors, tokenizer.json and what may stand beside them. */
export class HuggingFaceCheckpoint implements Checkpoint {
  readonly sha256: string;
  readonly config: ModelConfig;
  readonly tokenizerJson: string;
  readonly endTokens: readonly number[];
  readonly chatTemplate: string | null;
  readonly beginText: string | null;
  readonly endText: string | null;
  readonly generation: Checkpoint['generation'];
  readonly #folder: string;
  readonly #weights: SafetensorsFolder;
  /** Canonical names to the names in the files. */
  readonly #stored: ReadonlyMap<string, string>;

  private constructor(options: {
    folder: string;
    sha256: string;
    config: ModelConfig;
    tokens: HuggingFaceTokens;
    weights: SafetensorsFolder;
  }) {
    const { folder, sha256, config, tokens, weights } = options;
    this.sha256 = sha256;
    this.config = config;
    this.tokenizerJson = tokens.tokenizerJson;
    this.endTokens = config.kind === 'decoder' ? tokens.endTokens : [];
    this.chatTemplate = tokens.chatTemplate;
    this.beginText = tokens.beginText;
    this.endText = tokens.endText;
    this.generation = tokens.generation;
    this.#folder = folder;
    this.#weights = weights;
    this.#stored = new Map(weights.names.map((name) => [canonicalName(name, config), name]));
  }

  /**
   * @param sha256 the folder's `hashCheckpoint`, where the caller knows it already
   * @throws CheckpointError when a file is missing or broken, or the architecture is not supported.
   */
  static async open(folder: string, sha256?: string): Promise<HuggingFaceCheckpoint> {
    const configPath = join(folder, 'config.json');
    const configText = await readTextIfPresent(configPath);
    if (configText === undefined) {
      throw new CheckpointError(`${folder}: not a model: there is no config.json`);
    }
    const tokens = await readHuggingFaceTokens(folder);
    const config = await withPublishedLimits(folder, readHuggingFaceConfig(configPath, configText), tokens);
    const weights = await SafetensorsFolder.open(folder);
    try {
      const hash = sha256 ?? (await hashCheckpoint(folder));
      return new HuggingFaceCheckpoint({ folder, sha256: hash, config, tokens, weights });
    } catch (error) {
      await weights.close();
      throw error;
    }
  }

  has(tensor: string): boolean {
    return this.#stored.has(tensor);
  }

  shape(tensor: string): readonly number[] {
    const { file, name } = this.#locate(tensor);
    return file.shape(name);
  }

  async read(tensor: string, shape: readonly number[]): Promise<Float32Array> {
    const { file, name } = this.#locate(tensor);
    const stored = file.shape(name);
    if (stored.join() !== shape.join()) {
      throw new CheckpointError(
        `${file.path}: tensor ${name} is [${stored}], but the configuration asks for [${shape}]`,
      );
    }
    return file.read(name);
  }

  async close(): Promise<void> {
    await this.#weights.close();
  }

  #locate(tensor: string) {
    const name = this.#stored.get(tensor);
    const file = name === undefined ? undefined : this.#weights.owner(name);
    if (name === undefined || file === undefined) {
      throw new CheckpointError(`${this.#folder}: tensor ${tensor} is missing`);
    }
    return { file, name };
  }
}

/**
 * A task model keeps its encoder under a prefix that the bare encoder does not have, and the oldest BERT files call
 * a norm's weight and bias gamma and beta.
 */
function canonicalName(name: string, config: ModelConfig): string {
  if (config.kind === 'decoder') {
    return name;
  }
  return name
    .replace(/^(bert|roberta)\./, '')
    .replace(/LayerNorm\.gamma$/, 'LayerNorm.weight')
    .replace(/LayerNorm\.beta$/, 'LayerNorm.bias');
}

/** An encoder's authors may have published limits of its own, and whether their tokenizer tells a pair's texts apart. */
async function withPublishedLimits(
  folder: string,
  config: ModelConfig,
  tokens: HuggingFaceTokens,
): Promise<ModelConfig> {
  if (config.kind === 'decoder') {
    return config;
  }
  const { scoring, contextLength: positions } = config;
  return {
    ...config,
    contextLength: await readEncoderLimits(folder, { scoring, positions, tokens }),
    typedPairs: config.typedPairs && tokens.givesTypes,
  };
}
