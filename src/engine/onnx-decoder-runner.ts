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
  /** The cache of the last run, and its tensors: a hundred, which are made again only for another. */
  #cache: (CacheTensors & { readonly of: DecoderBatch['cache'] }) | undefined;

  constructor(session: OnnxSession, shape: DecoderShape) {
    this.#session = session;
    this.shape = shape;
  }

  async run(batch: DecoderBatch): Promise<DecoderOutput> {
    const { wanted, top, cache } = batch;
    const { vocabularySize } = this.shape;
    if (this.#cache?.of !== cache) this.#cache = { of: cache, ...cacheTensors(cache) };
    const { past, present } = this.#cache;
    const width = top ?? vocabularySize;
    const feeds = { ...batchTensors(batch), ...past };
    const size = wanted.length * width;
    const dims = [wanted.length, width];
    if (top === undefined) {
      if (this.#logits.length < size) this.#logits = new Float32Array(size);
      const logits = this.#logits.subarray(0, size);
      await this.#session.runInto(feeds, { logits: { type: 'float32', data: logits, dims }, ...present });
      return { logits };
    }
    if (this.#topLogits.length < size) {
      this.#topLogits = new Float32Array(size);
      this.#topTokens = new Int32Array(size);
    }
    const [logits, tokens] = [this.#topLogits.subarray(0, size), this.#topTokens.subarray(0, size)];
    await this.#session.runInto(feeds, {
      'top.logits': { type: 'float32', data: logits, dims },
      'top.tokens': { type: 'int32', data: tokens, dims },
      ...present,
    });
    return { logits: new Float32Array(0), top: { count: width, tokens, logits } };
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

/** The same tensors as inputs and as outputs of the graph, which writes into them. */
interface CacheTensors {
  readonly past: Readonly<Record<string, Tensor>>;
  readonly present: Readonly<Record<string, Tensor>>;
}

/** A batch as the inputs of a decoder's graph. */
export function decoderFeeds(batch: DecoderBatch): Record<string, Tensor> {
  return { ...batchTensors(batch), ...cacheTensors(batch.cache).past };
}

function batchTensors({
  rows,
  width,
  inputIds,
  lengths,
  longest,
  wanted,
  top,
}: Omit<DecoderBatch, 'cache'>): Record<string, Tensor> {
  return {
    input_ids: { type: 'int64', data: inputIds, dims: [rows, width] },
    lengths: { type: 'int32', data: lengths, dims: [rows] },
    longest: { type: 'int32', data: longest, dims: [1] },
    wanted: { type: 'int64', data: wanted, dims: [wanted.length] },
    top: { type: 'int64', data: BigInt64Array.of(BigInt(top ?? 1)), dims: [1] },
  };
}

function cacheTensors(cache: DecoderBatch['cache']): CacheTensors {
  const tensors = cache.flatMap(({ keys, values }, layer): [string, Tensor][] => [
    [`${layer}.key`, kvTensor(keys)],
    [`${layer}.value`, kvTensor(values)],
  ]);
  const named = (prefix: string) =>
    Object.fromEntries(tensors.map(([name, tensor]) => [`${prefix}.${name}`, tensor]));
  return { past: named('past'), present: named('present') };
}

function kvTensor({ data, dims }: KvTensor): Tensor {
  return { type: data instanceof Int8Array ? 'int8' : 'float32', data, dims };
}
