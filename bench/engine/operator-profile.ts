import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Shares of the time that operators took. What is left is of neither kind. */
export interface OperatorShares {
  /** Products with weights, and what quantizes their inputs. */
  readonly projections: number;
  readonly attention: number;
}

/** An event of ONNX Runtime's profile, which is in the Trace Event Format of Chrome's tracing. */
export interface ProfileEvent {
  readonly cat: string;
  readonly name: string;
  /** Microseconds. */
  readonly ts: number;
  readonly dur: number;
  readonly args?: {
    readonly op_name?: string;
    readonly input_type_shape?: readonly Readonly<Record<string, readonly number[]>>[];
    readonly output_type_shape?: readonly Readonly<Record<string, readonly number[]>>[];
  };
}

/**
 * Reads the profile that `work` has ONNX Runtime write under the prefix it is given.
 * @returns The shares within the last `runs` runs of the graph.
 */
export async function profileOperators(
  runs: number,
  work: (profilePrefix: string) => Promise<void>,
): Promise<OperatorShares> {
  const folder = await mkdtemp(join(tmpdir(), 'headrace-profile-'));
  try {
    await work(join(folder, 'profile'));
    const [file] = await readdir(folder);
    return sumOperators(JSON.parse(await readFile(join(folder, file!), 'utf8')), runs);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** See {@link profileOperators}. */
export function sumOperators(events: readonly ProfileEvent[], runs: number): OperatorShares {
  const starts = events.filter(({ name }) => name === 'model_run').map(({ ts }) => ts);
  const from = starts.sort((a, b) => a - b).at(-runs) ?? 0;
  const spent = { projections: 0, attention: 0, rest: 0 };
  for (const event of events) {
    // The time of an `If` is that of the operators in its branch, which are here themselves.
    if (event.args?.op_name === 'If') continue;
    if (event.cat === 'Node' && event.name.endsWith('_kernel_time') && event.ts >= from) {
      spent[kindOf(event)] += event.dur;
    }
  }
  const total = spent.projections + spent.attention + spent.rest;
  return { projections: spent.projections / total, attention: spent.attention / total };
}

/** Operators of attention on tensors that are not by head. */
const ofAttention = /^(GroupQueryAttention|MultiHeadAttention|RotaryEmbedding)$/;

/** Tensors by head have four dimensions, and only those: everything that touches them is attention. */
function kindOf({ args }: ProfileEvent): keyof OperatorShares | 'rest' {
  if (ofAttention.test(args?.op_name ?? '')) return 'attention';
  const shapes = [...(args?.input_type_shape ?? []), ...(args?.output_type_shape ?? [])];
  if (shapes.some((shape) => Object.values(shape)[0]?.length === 4)) return 'attention';
  return /MatMul|Gemm|^Abs$|^ReduceMax$|QuantizeLinear/.test(args?.op_name ?? '') ? 'projections' : 'rest';
}
