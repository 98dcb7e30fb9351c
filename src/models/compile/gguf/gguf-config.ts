import { CheckpointError, type DecoderConfig } from '../checkpoint.js';
import type { GgufFile } from './gguf-file.js';
import { recognizeLlama3 } from './rope-factors.js';

const architectures = ['llama', 'qwen2', 'qwen3'] as const;

/**
 * The configuration in a GGUF file's metadata (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, "LLM"),
 * with what only its tensors tell.
 * @throws CheckpointError when the architecture or something in its configuration is not supported.
 */
export async function readGgufConfig(file: GgufFile): Promise<DecoderConfig> {
  const { metadata, path } = file;
  const name = metadata.text('general.architecture');
  const architecture = architectures.find((known) => known === name);
  if (!architecture) {
    throw new CheckpointError(
      `${path}: architecture "${name}" is not supported; supported are ${architectures.join(', ')}`,
    );
  }
  const size = (key: string) => metadata.size(`${architecture}.${key}`);
  const number = (key: string) => metadata.number(`${architecture}.${key}`);
  const hiddenSize = size('embedding_length');
  const heads = size('attention.head_count');
  const kvHeads = number('attention.head_count_kv') ?? heads;
  const headSize = number('attention.key_length') ?? hiddenSize / heads;
  const theta = number('rope.freq_base') ?? 10_000;
  checkSupported(file, architecture, { heads, kvHeads, headSize });
  return {
    kind: 'decoder',
    architecture,
    vocabularySize: file.shape('token_embd.weight')[0] ?? 0,
    hiddenSize,
    intermediateSize: size('feed_forward_length'),
    layers: size('block_count'),
    heads,
    kvHeads,
    headSize,
    normEpsilon: number('attention.layer_norm_rms_epsilon') ?? 1e-6,
    contextLength: Math.min(
      size('context_length'),
      number('attention.sliding_window') || Number.POSITIVE_INFINITY,
    ),
    attentionBias: architecture === 'qwen2',
    queryKeyNorm: architecture === 'qwen3',
    tiedEmbeddings: !file.has('output.weight'),
    rope: { theta, ...(await readScaling(file, theta, headSize)) },
  };
}

function checkSupported(
  file: GgufFile,
  architecture: DecoderConfig['architecture'],
  { heads, kvHeads, headSize }: { heads: number; kvHeads: number; headSize: number },
): void {
  const { metadata, path } = file;
  const refuse = (what: string) => new CheckpointError(`${path}: ${what}`);
  const number = (key: string) => metadata.number(`${architecture}.${key}`);
  if (!Number.isInteger(heads / kvHeads)) {
    throw refuse(`${heads} heads cannot share ${kvHeads} key and value heads`);
  }
  if (!Number.isInteger(headSize) || headSize % 2 !== 0) {
    throw refuse(`head size ${headSize} is not an even whole number`);
  }
  if ((number('attention.value_length') ?? headSize) !== headSize) {
    throw refuse('keys and values of different sizes are not supported');
  }
  if ((number('rope.dimension_count') ?? headSize) !== headSize) {
    throw refuse('rotary positions over a part of each head are not supported');
  }
  if ((number('expert_count') ?? 0) > 0) {
    throw refuse('mixtures of experts are not supported');
  }
  const scaling = metadata.text(`${architecture}.rope.scaling.type`) ?? 'none';
  if (scaling !== 'none') {
    throw refuse(`rope scaling "${scaling}" is not supported`);
  }
  if (architecture !== 'qwen2' && file.has('blk.0.attn_q.bias')) {
    throw refuse(`biases in the attention are not supported for ${architecture}`);
  }
}

/** Llama 3's scaling is not in the metadata: the file holds the factors that came of it. */
async function readScaling(
  file: GgufFile,
  theta: number,
  headSize: number,
): Promise<Pick<DecoderConfig['rope'], 'llama3'>> {
  if (!file.has('rope_freqs.weight')) {
    return {};
  }
  const llama3 = recognizeLlama3(await file.read('rope_freqs.weight'), { theta, headSize });
  if (!llama3) {
    throw new CheckpointError(`${file.path}: the factors in rope_freqs.weight are not those of Llama 3`);
  }
  return { llama3 };
}
