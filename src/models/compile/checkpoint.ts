/**
 * A model's published files, read but not yet compiled: one view over a Hugging Face folder (safetensors) and over
 * a GGUF file. Tensor names, shapes and row orders are those of the Hugging Face implementation whatever the file
 * says: a GGUF reader renames its tensors and undoes the query and key permutation of architecture `llama`.
 * Encoders' names are those of the bare encoder (`embeddings.word_embeddings.weight`) beside those of a task's head
 * (`classifier.weight`): the prefix `bert.` or `roberta.` of task models is not part of them.
 */
export interface Checkpoint {
  /** SHA-256 over everything the compiled model depends on. */
  readonly sha256: string;
  readonly config: ModelConfig;
  /** A `tokenizer.json` of the Hugging Face tokenizers library, with no truncation and no padding. */
  readonly tokenizerJson: string;
  /** Token ids that end a turn. Empty for encoders. */
  readonly endTokens: readonly number[];
  /** Jinja source; null when the model has none. */
  readonly chatTemplate: string | null;
  readonly beginText: string | null;
  readonly endText: string | null;
  readonly generation: { readonly temperature?: number; readonly topP?: number; readonly topK?: number };
  has(tensor: string): boolean;
  /** Dimensions, outermost first. @throws CheckpointError when the tensor is missing. */
  shape(tensor: string): readonly number[];
  /**
   * The tensor's values in row-major order, converted to float32. The array is the caller's own.
   * @throws CheckpointError when the tensor is missing, has another shape than `shape`, or the file is cut short.
   */
  read(tensor: string, shape: readonly number[]): Promise<Float32Array>;
  close(): Promise<void>;
}

/** The files are not a model that can be compiled; the message names the file and what is wrong with it. */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError';
}

export type ModelConfig = DecoderConfig | EncoderConfig;

/** A causal language model of the llama family. */
export interface DecoderConfig {
  readonly kind: 'decoder';
  readonly architecture: 'llama' | 'qwen2' | 'qwen3';
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly normEpsilon: number;
  readonly contextLength: number;
  /** Whether q, k and v projections have biases (qwen2), and whether q and k heads are normalized (qwen3). */
  readonly attentionBias: boolean;
  readonly queryKeyNorm: boolean;
  /** Whether the output projection is the embedding table. */
  readonly tiedEmbeddings: boolean;
  readonly rope: {
    readonly theta: number;
    /** Llama 3's frequency scaling; absent for plain rotary positions. */
    readonly llama3?: {
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalContextLength: number;
    };
  };
}

/** A BERT or XLM-RoBERTa encoder. */
export interface EncoderConfig {
  readonly kind: 'encoder';
  readonly architecture: 'bert' | 'xlm-roberta';
  readonly scoring: 'cross-encoder' | 'bi-encoder';
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly normEpsilon: number;
  /** Positions a sequence may have, special tokens included. */
  readonly contextLength: number;
  /** Rows of the position table. */
  readonly positions: number;
  readonly firstPosition: number;
  readonly tokenTypes: number;
  /** Whether the model's tokenizer gives the second text of a pair token type 1; else every token has type 0. */
  readonly typedPairs: boolean;
  readonly paddingToken: number;
  /** `gelu` is the exact one, by erf. */
  readonly activation: 'gelu' | 'relu';
}
