import type { DecoderBatch, DecoderOutput, DecoderRunner, DecoderShape } from './decoder-runner.js';
import type { KvTensor } from './kv-plane.js';
import type { OnnxSession, Tensor } from './onnx-session.js';

/** A decoder's graph in an ONNX Runtime session, which it owns. */
export class OnnxDecoderRunner implements DecoderRunner {
  readonly shape: DecoderShape;
  readonly #session: OnnxSession;
  #top = { logits: new Float32Array(0), tokens: new Int32Array(0) };
  #whole = { logits: new Float32Array(0), likeliest: new Float32Array(0) };
  /** The cache of the last run, and its tensors: a hundred, which are made again only for another. */
  #cache: (CacheTensors & { readonly of: DecoderBatch['cache'] }) | undefined;

  constructor(session: OnnxSession, shape: DecoderShape) {
    this.#session = session;
    this.shape = shape;
  }

  async run(batch: DecoderBatch): Promise<DecoderOutput> {
    const { cache } = batch;
    if (this.#cache?.of !== cache) this.#cache = { of: cache, ...cacheTensors(cache) };
    const { past, present } = this.#cache;
    const { tensors, output } = this.#outputs(batch);
    await this.#session.runInto({ ...batchTensors(batch), ...past }, { ...tensors, ...present });
    return output;
  }

  /** What the graph is to write, and where. */
  #outputs({ wanted, top: count, whole: places }: DecoderBatch) {
    const { vocabularySize } = this.shape;
    const [rows, wholeRows] = [wanted.length, places.length];
    if (this.#top.logits.length < rows * count) {
      this.#top = { logits: new Float32Array(rows * count), tokens: new Int32Array(rows * count) };
    }
    if (this.#whole.likeliest.length < wholeRows) {
      this.#whole = {
        logits: new Float32Array(wholeRows * vocabularySize),
        likeliest: new Float32Array(wholeRows),
      };
    }
    const top = {
      count,
      logits: this.#top.logits.subarray(0, rows * count),
      tokens: this.#top.tokens.subarray(0, rows * count),
    };
    const whole = {
      places,
      logits: this.#whole.logits.subarray(0, wholeRows * vocabularySize),
      likeliest: this.#whole.likeliest.subarray(0, wholeRows),
    };
    const tensors: Record<string, Tensor> = {
      'top.logits': { type: 'float32', data: top.logits, dims: [rows, count] },
      'top.tokens': { type: 'int32', data: top.tokens, dims: [rows, count] },
      // ONNX Runtime does not agree about the dimensions of what is empty.
      ...(wholeRows > 0 && {
        logits: { type: 'float32', data: whole.logits, dims: [wholeRows, vocabularySize] },
        likeliest: { type: 'float32', data: whole.likeliest, dims: [wholeRows] },
      }),
    };
    return { tensors, output: { top, whole } };
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
  whole,
}: Omit<DecoderBatch, 'cache'>): Record<string, Tensor> {
  return {
    input_ids: { type: 'int64', data: inputIds, dims: [rows, width] },
    lengths: { type: 'int32', data: lengths, dims: [rows] },
    longest: { type: 'int32', data: longest, dims: [1] },
    wanted: { type: 'int64', data: wanted, dims: [wanted.length] },
    top: { type: 'int64', data: BigInt64Array.of(BigInt(top)), dims: [1] },
    whole: { type: 'int64', data: whole, dims: [whole.length] },
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
