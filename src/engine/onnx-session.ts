import * as ort from 'onnxruntime-node';
import { type ExecutionProvider, writtenOutput } from '../models/manifest.js';
import { bytesSaturate } from './byte-products.js';

/**
 * A tensor as it goes in and out of a graph; `data` is used in place, not copied, on the way in. One that is used again
 * costs less than a new one.
 */
export interface Tensor {
  readonly type: 'float32' | 'int64' | 'int32' | 'int8' | 'uint8';
  readonly data: Float32Array | BigInt64Array | Int32Array | Int8Array | Uint8Array;
  readonly dims: readonly number[];
}

export interface OnnxSessionOptions {
  readonly threads: number;
  /** Whether ONNX Runtime's threads spin while they wait for each other within a run; they do when left out. */
  readonly spinning?: boolean;
  /** What runs the graph: the processor when left out. */
  readonly provider?: ExecutionProvider | undefined;
  /** How the name of a file begins to which `close` writes how long each operator took; none when left out. */
  readonly profilePrefix?: string;
}

/** How onnxruntime-node begins to say that a sequence is no tensor; the graph has run then. */
const unreturnable = 'Non tensor type';

let saturating: Promise<boolean> | undefined;

/**
 * Whether this processor computes wrongly with signed constant bytes; tried once in a process.
 * @param options of the sessions that will be opened: some are taken from a process's first one and hold for all
 */
function saturates(options: ort.InferenceSession.SessionOptions): Promise<boolean> {
  saturating ??= bytesSaturate(async (graph, row) => {
    const session = await ort.InferenceSession.create(graph, options);
    const { sums } = await session.run({ row: new ort.Tensor('uint8', row, [1, row.length]) });
    await session.release();
    return sums!.data as Int32Array;
  });
  return saturating;
}

/** The one place that touches onnxruntime-node. `run` blocks the calling thread until the graph has run. */
export class OnnxSession {
  readonly #session: ort.InferenceSession;

  private constructor(session: ort.InferenceSession) {
    this.#session = session;
  }

  /** @throws Error when the graph cannot be loaded, or the execution provider cannot be used on this machine. */
  static async open(path: string, options: OnnxSessionOptions): Promise<OnnxSession> {
    const provider = options.provider ?? 'cpu';
    const session = {
      intra_op: { allow_spinning: options.spinning === false ? '0' : '1' },
      // Within a run threads that sleep would be woken for each of a thousand operators. Between runs they would take
      // the cores from the API, the database and other workers.
      force_spinning_stop: '1',
      // The softmax of a masked score is a denormal number, and to compute with those takes a hundred times as long:
      // half of the softmax of a prompt. What is lost is below 1e-38. It holds for the thread of the first session of
      // a process too, JavaScript included.
      set_denormal_as_zero: '1',
      // Work is handed out in parts that become smaller, this many for each thread at first: of equal parts the last one
      // keeps a thread waiting. Steps of 32 sequences of 1,000 positions are 4 to 10% quicker, others hardly.
      dynamic_block_base: '2',
    };
    const isExact = provider !== 'cpu' || !(await saturates({ intraOpNumThreads: 1, extra: { session } }));
    const loading = ort.InferenceSession.create(path, {
      executionProviders: [provider],
      intraOpNumThreads: options.threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
      // A plan of the memory is kept for every shape that inputs ever had, and for each branch of a graph of its own:
      // batches have thousands of shapes, and what is kept never shrinks.
      enableMemPattern: false,
      logSeverityLevel: 3,
      ...(options.profilePrefix !== undefined && {
        enableProfiling: true,
        profileFilePrefix: options.profilePrefix,
      }),
      // Makes constant weights unsigned, whose products are right on every processor. Where the signed ones' are right
      // too they are up to five times as fast, so ONNX Runtime is not asked for this wherever it could do it.
      extra: { session: isExact ? session : { ...session, x64quantprecision: '1' } },
    });
    return new OnnxSession(await loading.catch((error) => fail(provider, error)));
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
    const outputs = await this.#session.run(tensorsOf(feeds), [...fetches]);
    return outputs as unknown as Record<string, Tensor>;
  }

  /**
   * Runs a graph whose first output is `writtenOutput` on `feeds` and writes the outputs named in `outputs` into the
   * memory of those, which may be that of inputs.
   *
   * onnxruntime-node writes outputs where it is told, but returns a copy of each besides: for a cache as an output that
   * would be all of it at every step. It makes the copies one by one, and gives up at an output that it cannot return.
   */
  async runInto(
    feeds: Readonly<Record<string, Tensor>>,
    outputs: Readonly<Record<string, Tensor>>,
  ): Promise<void> {
    try {
      await this.#session.run(tensorsOf(feeds), { [writtenOutput]: null, ...tensorsOf(outputs) });
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith(unreturnable))) throw error;
    }
  }

  async close(): Promise<void> {
    await this.#session.release();
  }
}

/** What was made of tensors that may be used again. */
const known = new WeakMap<Tensor, ort.Tensor>();

function tensorsOf(values: Readonly<Record<string, Tensor>>): Record<string, ort.Tensor> {
  const tensors: Record<string, ort.Tensor> = {};
  for (const [name, value] of Object.entries(values)) {
    let tensor = known.get(value);
    if (!tensor) {
      tensor = new ort.Tensor(value.type, value.data as Float32Array, value.dims);
      known.set(value, tensor);
    }
    tensors[name] = tensor;
  }
  return tensors;
}

/** ONNX Runtime says which file it did not find, and not what that means. */
function fail(provider: ExecutionProvider, error: Error): never {
  if (provider === 'cpu') throw error;
  const backends = ort.listSupportedBackends().map(({ name }) => name);
  const reason = backends.includes(provider)
    ? `it needs hardware or libraries that are not here (${error.message.split('\n', 1)[0]})`
    : `this build of ONNX Runtime has ${backends.join(', ')}`;
  throw new Error(`The execution provider "${provider}" cannot be used: ${reason}`, { cause: error });
}
