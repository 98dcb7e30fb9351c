import type { DecoderBatch, DecoderOutput, DecoderRunner, DecoderShape } from './decoder-runner.js';
import type { OnnxSession, Tensor } from './onnx-session.js';

/** A decoder's graph in an ONNX Runtime session, which it owns. */
export class OnnxDecoderRunner implements DecoderRunner {
  readonly shape: DecoderShape;
  readonly #session: OnnxSession;
  readonly #outputs: readonly string[];

  constructor(session: OnnxSession, shape: DecoderShape) {
    this.#session = session;
    this.shape = shape;
    const layers = Array.from({ length: shape.layers }, (_, layer) => layer);
    this.#outputs = ['logits', ...layers.flatMap((layer) => [`new.${layer}.key`, `new.${layer}.value`])];
  }

  async run(batch: DecoderBatch): Promise<DecoderOutput> {
    const { layers, heads, kvHeads } = this.shape;
    const { rows, width, capacity } = batch;
    const feeds: Record<string, Tensor> = {
      input_ids: { type: 'int64', data: batch.inputIds, dims: [rows, width] },
      position_ids: { type: 'int64', data: batch.positionIds, dims: [rows, width] },
      mask: {
        type: 'float32',
        data: batch.mask,
        dims: [rows, 1, (heads / kvHeads) * width, capacity + width],
      },
      last: { type: 'int64', data: batch.last, dims: [rows] },
    };
    for (const [layer, tensors] of batch.past.entries()) {
      for (const { name, data, dims } of tensors) {
        feeds[`past.${layer}.${name}`] = {
          type: data instanceof Float32Array ? 'float32' : 'uint8',
          data,
          dims,
        };
      }
    }
    const outputs = await this.#session.run(feeds, this.#outputs);
    const keys: Float32Array[] = [];
    const values: Float32Array[] = [];
    for (let layer = 0; layer < layers; layer++) {
      keys.push(outputs[`new.${layer}.key`]!.data as Float32Array);
      values.push(outputs[`new.${layer}.value`]!.data as Float32Array);
    }
    return { logits: outputs.logits!.data as Float32Array, keys, values };
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}
