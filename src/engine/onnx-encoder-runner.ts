import type { EncoderBatch, EncoderRunner, EncoderShape } from './encoder-runner.js';
import type { OnnxSession, Tensor } from './onnx-session.js';

/** An encoder's graph in an ONNX Runtime session, which it owns. */
export class OnnxEncoderRunner implements EncoderRunner {
  readonly shape: EncoderShape;
  readonly #session: OnnxSession;

  constructor(session: OnnxSession, shape: EncoderShape) {
    this.#session = session;
    this.shape = shape;
  }

  async run({ rows, width, ...arrays }: EncoderBatch): Promise<Float32Array> {
    const dims = [rows, width];
    const feeds: Record<string, Tensor> = {
      input_ids: { type: 'int64', data: arrays.inputIds, dims },
      attention_mask: { type: 'int64', data: arrays.attentionMask, dims },
      position_ids: { type: 'int64', data: arrays.positionIds, dims },
    };
    if (this.shape.tokenTypes) feeds.token_type_ids = { type: 'int64', data: arrays.tokenTypeIds, dims };
    const outputs = await this.#session.run(feeds, ['rows']);
    return outputs.rows!.data as Float32Array;
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}
