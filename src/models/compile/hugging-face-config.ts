import { z } from 'zod';
import { CheckpointError, type DecoderConfig, type EncoderConfig, type ModelConfig } from './checkpoint.js';
import { parseJson } from './json-file.js';

const size = z.int().positive();

const ropeSchema = z.looseObject({
  rope_type: z.string().optional(),
  /** Older files' name of `rope_type`. */
  type: z.string().optional(),
  rope_theta: z.number().positive().optional(),
  partial_rotary_factor: z.number().optional(),
});

const llama3Schema = z.object({
  factor: z.number().positive(),
  low_freq_factor: z.number().positive(),
  high_freq_factor: z.number().positive(),
  original_max_position_embeddings: size,
});

const decoderSchema = z.object({
  vocab_size: size,
  hidden_size: size,
  intermediate_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  num_key_value_heads: size.nullish(),
  head_dim: size.nullish(),
  rms_norm_eps: z.number().positive().default(1e-6),
  max_position_embeddings: size,
  tie_word_embeddings: z.boolean().default(false),
  hidden_act: z.literal('silu', 'only silu is supported').default('silu'),
  attention_bias: z.boolean().default(false),
  mlp_bias: z.literal(false, 'biases in the MLP are not supported').default(false),
  rope_theta: z.number().positive().nullish(),
  /** `rope_parameters` is what `rope_theta` and `rope_scaling` became. */
  rope_scaling: ropeSchema.nullish(),
  rope_parameters: ropeSchema.nullish(),
  sliding_window: size.nullish(),
  use_sliding_window: z.boolean().optional(),
  quantization_config: z.looseObject({ quant_method: z.string().optional() }).optional(),
});

const encoderSchema = z.object({
  architectures: z.array(z.string()).nullish(),
  vocab_size: size,
  hidden_size: size,
  intermediate_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  layer_norm_eps: z.number().positive().default(1e-12),
  max_position_embeddings: size,
  type_vocab_size: size.default(2),
  pad_token_id: z.int().nonnegative().nullish(),
  hidden_act: z.enum(['gelu', 'relu'], 'only gelu and relu are supported').default('gelu'),
  position_embedding_type: z.literal('absolute', 'only absolute positions are supported').default('absolute'),
  num_labels: size.optional(),
  id2label: z.record(z.string(), z.unknown()).nullish(),
});

/** Architectures by the `model_type` of their config.json. */
const readers: Readonly<Record<string, (path: string, text: string) => ModelConfig>> = {
  llama: (path, text) => readDecoder(path, text, 'llama'),
  mistral: (path, text) => readDecoder(path, text, 'llama'),
  qwen2: (path, text) => readDecoder(path, text, 'qwen2'),
  qwen3: (path, text) => readDecoder(path, text, 'qwen3'),
  bert: (path, text) => readEncoder(path, text, 'bert'),
  'xlm-roberta': (path, text) => readEncoder(path, text, 'xlm-roberta'),
};

/**
 * Reads the text of a config.json.
 * @throws CheckpointError naming `path` when the architecture, or something in its configuration, is not supported.
 */
export function readHuggingFaceConfig(path: string, text: string): ModelConfig {
  const { model_type: type } = parseJson(path, text, z.object({ model_type: z.string() }));
  const reader = Object.hasOwn(readers, type) ? readers[type] : undefined;
  if (!reader) {
    throw new CheckpointError(
      `${path}: architecture "${type}" is not supported; supported are ${Object.keys(readers).join(', ')}`,
    );
  }
  return reader(path, text);
}

function readDecoder(path: string, text: string, architecture: DecoderConfig['architecture']): DecoderConfig {
  const config = parseJson(path, text, decoderSchema);
  if (config.quantization_config) {
    const method = config.quantization_config.quant_method ?? 'an unnamed method';
    throw new CheckpointError(`${path}: weights quantized by ${method} are not supported`);
  }
  if (config.attention_bias && architecture !== 'qwen2') {
    throw new CheckpointError(`${path}: attention_bias is not supported for ${architecture}`);
  }
  const heads = config.num_attention_heads;
  const kvHeads = config.num_key_value_heads ?? heads;
  if (heads % kvHeads !== 0) {
    throw new CheckpointError(`${path}: ${heads} heads cannot share ${kvHeads} key and value heads`);
  }
  const headSize = config.head_dim ?? (architecture === 'qwen3' ? 128 : config.hidden_size / heads);
  if (!Number.isInteger(headSize) || headSize % 2 !== 0) {
    throw new CheckpointError(`${path}: head size ${headSize} is not an even whole number`);
  }
  return {
    kind: 'decoder',
    architecture,
    vocabularySize: config.vocab_size,
    hiddenSize: config.hidden_size,
    intermediateSize: config.intermediate_size,
    layers: config.num_hidden_layers,
    heads,
    kvHeads,
    headSize,
    normEpsilon: config.rms_norm_eps,
    contextLength: contextLength(config),
    attentionBias: architecture === 'qwen2',
    queryKeyNorm: architecture === 'qwen3',
    tiedEmbeddings: config.tie_word_embeddings,
    rope: readRope(path, config),
  };
}

/** A sliding attention window is the same as full attention as long as nothing has slid out of it. */
function contextLength(config: z.infer<typeof decoderSchema>): number {
  const window = config.use_sliding_window === false ? undefined : config.sliding_window;
  return Math.min(config.max_position_embeddings, window ?? Number.POSITIVE_INFINITY);
}

function readRope(path: string, config: z.infer<typeof decoderSchema>): DecoderConfig['rope'] {
  const rope = config.rope_parameters ?? config.rope_scaling ?? {};
  const theta = rope.rope_theta ?? config.rope_theta ?? 10_000;
  if ((rope.partial_rotary_factor ?? 1) !== 1) {
    throw new CheckpointError(`${path}: rotary positions over a part of each head are not supported`);
  }
  const type = rope.rope_type ?? rope.type ?? 'default';
  switch (type) {
    case 'default':
      return { theta };
    case 'llama3': {
      const scaling = parseJson(path, JSON.stringify(rope), llama3Schema);
      return {
        theta,
        llama3: {
          factor: scaling.factor,
          lowFrequencyFactor: scaling.low_freq_factor,
          highFrequencyFactor: scaling.high_freq_factor,
          originalContextLength: scaling.original_max_position_embeddings,
        },
      };
    }
    default:
      throw new CheckpointError(
        `${path}: rope scaling "${type}" is not supported; supported are default and llama3`,
      );
  }
}

function readEncoder(path: string, text: string, architecture: EncoderConfig['architecture']): EncoderConfig {
  const config = parseJson(path, text, encoderSchema);
  if (config.hidden_size % config.num_attention_heads !== 0) {
    throw new CheckpointError(
      `${path}: hidden size ${config.hidden_size} does not divide into ${config.num_attention_heads} heads`,
    );
  }
  const paddingToken = config.pad_token_id ?? (architecture === 'bert' ? 0 : 1);
  const firstPosition = architecture === 'bert' ? 0 : paddingToken + 1;
  return {
    kind: 'encoder',
    architecture,
    scoring: classifierScoring(path, config),
    vocabularySize: config.vocab_size,
    hiddenSize: config.hidden_size,
    intermediateSize: config.intermediate_size,
    layers: config.num_hidden_layers,
    heads: config.num_attention_heads,
    normEpsilon: config.layer_norm_eps,
    contextLength: config.max_position_embeddings - firstPosition,
    positions: config.max_position_embeddings,
    firstPosition,
    tokenTypes: config.type_vocab_size,
    typedPairs: architecture === 'bert',
    paddingToken,
    activation: config.hidden_act,
  };
}

/**
 * Whether a model scores pairs, or embeds texts.
 * @throws CheckpointError when it sorts texts into classes
 */
export function classifierScoring(
  path: string,
  config: Pick<z.infer<typeof encoderSchema>, 'architectures' | 'num_labels' | 'id2label'>,
): EncoderConfig['scoring'] {
  if (!config.architectures?.some((name) => name.endsWith('ForSequenceClassification'))) {
    return 'bi-encoder';
  }
  // transformers gives a classifier two labels unless its config says otherwise.
  const labels = config.num_labels ?? (config.id2label ? Object.keys(config.id2label).length : 2);
  if (labels !== 1) {
    throw new CheckpointError(
      `${path}: a classifier of ${labels} labels has no relevance score; one label is needed`,
    );
  }
  return 'cross-encoder';
}
