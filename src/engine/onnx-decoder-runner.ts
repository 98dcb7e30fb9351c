import { topLogits } from '../models/manifest.js';
import type { DecoderBatch, DecoderOutput, DecoderRunner, DecoderShape } from './decoder-runner.js';
import type { KvTensor } from './kv-plane.js';
import type { OnnxSession, Tensor } from './onnx-session.js';

/** A decoder's graph in an ONNX Runtime session, which it owns. */
export class OnnxDecoderRunner implements DecoderRunner {
  readonly shape: DecoderShape;
  readonly #session: OnnxSession;
  #logits = new Float32Array(0);
  #topLogits = new Float32Array(0);
  #topTokens = new Int32Array(0);

  constructor(session: OnnxSession, shape: DecoderShape) {
    this.#session = session;
    this.shape = shape;
  }

  async run(batch: DecoderBatch): Promise<DecoderOutput> {
    const { rows, topIsEnough } = batch;
    const { vocabularySize } = this.shape;
    const cache = cacheTensors(batch);
    const present = named('present', cache);
    const feeds = decoderFeeds(batch, cache);
    if (!topIsEnough) {
      const size = rows * vocabularySize;
      if (this.#logits.length < size) this.#logits = new Float32Array(size);
      const logits = this.#logits.subarray(0, size);
      const dims = [rows, vocabularySize];
      await this.#session.runInto(feeds, { logits: { type: 'float32', data: logits, dims }, ...present });
      return { logits };
    }
    const count = Math.min(topLogits, vocabularySize);
    const size = rows * count;
    if (this.#topLogits.length < size) {
      this.#topLogits = new Float32Array(size);
      this.#topTokens = new Int32Array(size);
    }
    const [logits, tokens] = [this.#topLogits.subarray(0, size), this.#topTokens.subarray(0, size)];
    const dims = [rows, count];
    await this.#session.runInto(feeds, {
      'top.logits': { type: 'float32', data: logits, dims },
      'top.tokens': { type: 'int32', data: tokens, dims },
      ...present,
    });
    return { logits: new Float32Array(0), top: { count, tokens, logits } };
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

/** A batch as the inputs of a decoder's graph. */
export function decoderFeeds(batch: DecoderBatch, cache = cacheTensors(batch)): Record<string, Tensor> {
  const { rows, width, inputIds, lengths, longest, last } = batch;
  return {
    input_ids: { type: 'int64', data: inputIds, dims: [rows, width] },
    lengths: { type: 'int32', data: lengths, dims: [rows] },
    longest: { type: 'int32', data: longest, dims: [1] },
    last: { type: 'int64', data: last, dims: [rows] },
    ...named('past', cache),
  };
}

/** The cache of each layer, by the end of its name. */
function cacheTensors({ cache }: DecoderBatch): [string, Tensor][] {
  return cache.flatMap(({ keys, values }, layer) => [
    [`${layer}.key`, kvTensor(keys)],
    [`${layer}.value`, kvTensor(values)],
  ]);
}

function named(prefix: string, tensors: readonly [string, Tensor][]): Record<string, Tensor> {
  return Object.fromEntries(tensors.map(([name, tensor]) => [`${prefix}.${name}`, tensor]));
}

function kvTensor({ data, dims }: KvTensor): Tensor {
  return { type: data instanceof Int8Array ? 'int8' : 'float32', data, dims };
}
