import * as ort from 'onnxruntime-node';

/** A tensor as it goes in and out of a graph; `data` is used in place, not copied, on the way in. */
export interface Tensor {
  readonly type: 'float32' | 'int64' | 'int32' | 'int8' | 'uint8';
  readonly data: Float32Array | BigInt64Array | Int32Array | Int8Array | Uint8Array;
  readonly dims: readonly number[];
}

export interface OnnxSessionOptions {
  readonly threads: number;
  /** Whether ONNX Runtime's threads spin between runs: quicker steps, at the cost of a core that never rests. */
  readonly spinning?: boolean;
  readonly providers?: readonly string[];
}

/** The one place that touches onnxruntime-node. `run` blocks the calling thread until the graph has run. */
export class OnnxSession {
  readonly #session: ort.InferenceSession;

  private constructor(session: ort.InferenceSession) {
    this.#session = session;
  }

  static async open(path: string, options: OnnxSessionOptions): Promise<OnnxSession> {
    const session = await ort.InferenceSession.create(path, {
      executionProviders: [...(options.providers ?? ['cpu'])],
      intraOpNumThreads: options.threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
      logSeverityLevel: 3,
      extra: {
        session: {
          intra_op: { allow_spinning: options.spinning === false ? '0' : '1' },
          // On processors without VNNI, products of unsigned and signed bytes overflow 16 bits: weights are made
          // unsigned there, and products are right. Elsewhere this changes nothing.
          x64quantprecision: '1',
        },
      },
    });
    return new OnnxSession(session);
  }

  get inputNames(): readonly string[] {
    return this.#session.inputNames;
  }

  get outputNames(): readonly string[] {
    return this.#session.outputNames;
  }

  /** Runs the graph on `feeds` and returns the outputs named in `fetches` (all of them when left out). */
  async run(
    feeds: Readonly<Record<string, Tensor>>,
    fetches: readonly string[] = this.outputNames,
  ): Promise<Record<string, Tensor>> {
    const inputs: Record<string, ort.Tensor> = {};
    for (const [name, { type, data, dims }] of Object.entries(feeds)) {
      inputs[name] = new ort.Tensor(type, data as Float32Array, dims);
    }
    const outputs = await this.#session.run(inputs, [...fetches]);
    return outputs as unknown as Record<string, Tensor>;
  }

  async close(): Promise<void> {
    await this.#session.release();
  }
}
