import type { DecoderBatch, DecoderOutput, DecoderRunner, DecoderShape } from './decoder-runner.js';
import type { KvTensor } from './kv-plane.js';
import type { OnnxSession, Tensor } from './onnx-session.js';

/** A decoder's graph in an ONNX Runtime session, which it owns. */
export class OnnxDecoderRunner implements DecoderRunner {
  readonly shape: DecoderShape;
  readonly #session: OnnxSession;

  constructor(session: OnnxSession, shape: DecoderShape) {
    this.#session = session;
    this.shape = shape;
  }

  async run(batch: DecoderBatch): Promise<DecoderOutput> {
    const scores = batch.topIsEnough ? ['top.logits', 'top.tokens'] : ['logits'];
    const outputs = await this.#session.run(decoderFeeds(batch), [...scores, 'new']);
    const states = outputs.new!.data as Float32Array | Uint8Array;
    const size = states.length / this.shape.layers / 2;
    const part = (index: number) => states.subarray(index * size, (index + 1) * size);
    const keys = Array.from({ length: this.shape.layers }, (_, layer) => part(2 * layer));
    const values = Array.from({ length: this.shape.layers }, (_, layer) => part(2 * layer + 1));
    if (!batch.topIsEnough) return { logits: outputs.logits!.data as Float32Array, keys, values };
    const { data: logits, dims } = outputs['top.logits']!;
    const tokens = outputs['top.tokens']!.data as Int32Array;
    const top = { count: dims[1]!, tokens, logits: logits as Float32Array };
    return { logits: new Float32Array(0), top, keys, values };
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

/** A batch as the inputs of a decoder's graph. */
export function decoderFeeds(batch: DecoderBatch): Record<string, Tensor> {
  const { rows, width } = batch;
  const feeds: Record<string, Tensor> = {
    input_ids: { type: 'int64', data: batch.inputIds, dims: [rows, width] },
    position_ids: { type: 'int64', data: batch.positionIds, dims: [rows, width] },
    lengths: { type: 'int32', data: batch.lengths, dims: [rows] },
    longest: { type: 'int32', data: batch.longest, dims: [1] },
    last: { type: 'int64', data: batch.last, dims: [rows] },
  };
  for (const [layer, { keys, values }] of batch.past.entries()) {
    feeds[`past.${layer}.key`] = kvTensor(keys);
    feeds[`past.${layer}.value`] = kvTensor(values);
  }
  return feeds;
}

function kvTensor({ data, dims }: KvTensor): Tensor {
  return { type: data instanceof Uint8Array ? 'uint8' : 'float32', data, dims };
}
