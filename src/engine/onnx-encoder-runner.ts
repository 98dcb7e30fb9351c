import type { EncoderBatch, EncoderRunner, EncoderShape } from './encoder-runner.js';
import type { OnnxSession, Tensor } from './onnx-session.js';

/**
 * What a graph calls its rows: `rows` where it was compiled here; those that others publish have the names of
 * Optimum and of Sentence Transformers. The first that is there is taken.
 */
const outputNames = ['rows', 'logits', 'sentence_embedding', 'last_hidden_state', 'token_embeddings'];

/** An encoder's graph in an ONNX Runtime session, which it owns. */
export class OnnxEncoderRunner implements EncoderRunner {
  readonly shape: EncoderShape;
  readonly #session: OnnxSession;
  readonly #output: string;

  /** @throws Error when the graph gives nothing by a name that is known. */
  constructor(session: OnnxSession, shape: EncoderShape) {
    this.#session = session;
    this.shape = shape;
    const output = outputNames.find((name) => session.outputNames.includes(name));
    if (output === undefined) {
      throw new Error(`The graph gives ${session.outputNames.join(', ')}, none of ${outputNames.join(', ')}`);
    }
    this.#output = output;
  }

  async run(batch: EncoderBatch): Promise<Float32Array> {
    const feeds = encoderFeeds(batch, this.#session.inputNames);
    const outputs = await this.#session.run(feeds, [this.#output]);
    const { data, dims: shape } = outputs[this.#output]!;
    const rows = data as Float32Array;
    return shape.length === 3 ? meanOfTokens(rows, batch, this.shape.dimension) : rows;
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

/** A batch as those inputs of an encoder's graph that it has. */
export function encoderFeeds(batch: EncoderBatch, names: readonly string[]): Record<string, Tensor> {
  const dims = [batch.rows, batch.width];
  const arrays: Record<string, BigInt64Array> = {
    input_ids: batch.inputIds,
    attention_mask: batch.attentionMask,
    position_ids: batch.positionIds,
    token_type_ids: batch.tokenTypeIds,
  };
  return Object.fromEntries(names.map((name) => [name, { type: 'int64', data: arrays[name]!, dims }]));
}

/**
 * The mean of each row's token states, padding left out, at length 1.
 * @param states [rows, width, dimension]
 */
function meanOfTokens(
  states: Float32Array,
  { rows, width, attentionMask }: EncoderBatch,
  dimension: number,
): Float32Array {
  const means = new Float32Array(rows * dimension);
  for (let row = 0; row < rows; row++) {
    const mean = means.subarray(row * dimension, (row + 1) * dimension);
    for (let column = row * width; column < (row + 1) * width; column++) {
      if (attentionMask[column] === 0n) continue;
      for (let i = 0; i < dimension; i++) mean[i]! += states[column * dimension + i]!;
    }
    // The length of the sum does not matter: only its direction is kept.
    const length = Math.sqrt(mean.reduce((sum, value) => sum + value * value, 0));
    if (length > 0) for (let i = 0; i < dimension; i++) mean[i]! /= length;
  }
  return means;
}
