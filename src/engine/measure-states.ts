import { setImmediate } from 'node:timers/promises';
import { BatchBuilder } from './batch.js';
import type { DecoderShape } from './decoder-runner.js';
import { encoderBatch } from './encoder-batch.js';
import type { EncoderShape } from './encoder-runner.js';
import { KvCache } from './kv-cache.js';
import { decoderFeeds } from './onnx-decoder-runner.js';
import { encoderFeeds } from './onnx-encoder-runner.js';
import { OnnxSession, type Tensor } from './onnx-session.js';
import type { EncodeRequest } from './request.js';

/**
 * How far a layer's keys and values reach, and what attention mixes of the values, by element in the order of their
 * heads. Of keys it is the largest length of the pair that rotary positions turn, for both its elements: at some other
 * position either may be as large. Of the others it is the largest magnitude.
 */
export interface StateRange {
  readonly key: Float32Array;
  readonly value: Float32Array;
  readonly mixed: Float32Array;
}

/** What was measured of a model. */
export interface Measured {
  /** Of a decoder, by layer. */
  readonly states: readonly StateRange[];
  /** By what the outputs `rows.NAME` are called, the largest magnitudes of rows, in no order. */
  readonly rows: ReadonlyMap<string, Float32Array>;
}

export interface MeasureOptions<Shape, Sequence> {
  /** A graph with outputs `rows.NAME`, float32 [n, 1]. */
  readonly graph: string;
  readonly shape: Shape;
  readonly sequences: readonly Sequence[];
  readonly threads: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a decoder over sequences of tokens and finds how far its keys and values reach. The graph has outputs `key.L`,
 * `value.L` and `mixed.L` besides, float32 [B, S, its width].
 * @throws Error when the graph cannot be run; the signal's reason when it aborts
 */
export async function measureDecoder(options: MeasureOptions<DecoderShape, Int32Array>): Promise<Measured> {
  const { shape } = options;
  const states = Array.from({ length: shape.layers }, () => ({
    key: new Float32Array(shape.kvHeads * shape.headSize),
    value: new Float32Array(shape.kvHeads * shape.headSize),
    mixed: new Float32Array(shape.heads * shape.headSize),
  }));
  const batches = new BatchBuilder();
  const rows = await measure(options, {
    feeds: (tokens) => {
      const { length } = tokens;
      const cache = new KvCache({ shape, slots: 1, contextLength: length, maxBytes: Number.MAX_VALUE });
      cache.fit({ rows: 1, longest: length, limit: length });
      return decoderFeeds({ ...batches.build([{ cached: 0, tokens }]), cache: cache.view(0, 1) });
    },
    use: (outputs) => {
      for (const [layer, range] of states.entries()) {
        const numbers = (part: keyof StateRange) => outputs[`${part}.${layer}`]!.data as Float32Array;
        widenPairs(range.key, numbers('key'), shape.headSize);
        for (const part of ['value', 'mixed'] as const) widen(range[part], numbers(part));
      }
    },
  });
  return { states, rows };
}

/**
 * Runs an encoder over sequences and finds how far its rows reach.
 * @throws Error when the graph cannot be run; the signal's reason when it aborts
 */
export async function measureEncoder(
  options: MeasureOptions<EncoderShape, EncodeRequest['sequences'][number]>,
): Promise<Measured> {
  const { shape } = options;
  const rows = await measure(options, {
    feeds: (sequence, names) => encoderFeeds(encoderBatch([sequence], shape), names),
    use: () => {},
  });
  return { states: [], rows };
}

async function measure<Sequence>(
  { graph, sequences, threads, signal }: MeasureOptions<unknown, Sequence>,
  work: {
    readonly feeds: (sequence: Sequence, names: readonly string[]) => Record<string, Tensor>;
    readonly use: (outputs: Readonly<Record<string, Tensor>>) => void;
  },
): Promise<Map<string, Float32Array>> {
  const found = new Map<string, number[]>();
  const prefix = 'rows.';
  const session = await OnnxSession.open(graph, { threads });
  try {
    for (const sequence of sequences) {
      // A run blocks the thread; whoever wants to abort must have a turn.
      await setImmediate();
      signal?.throwIfAborted();
      const outputs = await session.run(work.feeds(sequence, session.inputNames));
      work.use(outputs);
      for (const [name, { data }] of Object.entries(outputs)) {
        if (!name.startsWith(prefix)) continue;
        const numbers = found.get(name) ?? [];
        for (const number of data as Float32Array) numbers.push(number);
        found.set(name, numbers);
      }
    }
  } finally {
    await session.close();
  }
  return new Map(
    [...found].map(([name, numbers]) => [name.slice(prefix.length), Float32Array.from(numbers)]),
  );
}

/** @param rows [n, range.length] */
function widen(range: Float32Array, rows: Float32Array): void {
  for (let from = 0; from < rows.length; from += range.length) {
    for (let at = 0; at < range.length; at++) {
      const magnitude = Math.abs(rows[from + at]!);
      if (magnitude > range[at]!) range[at] = magnitude;
    }
  }
}

/** @param rows [n, range.length], each of heads whose halves are the two elements of each pair */
function widenPairs(range: Float32Array, rows: Float32Array, headSize: number): void {
  const half = headSize / 2;
  for (let from = 0; from < rows.length; from += range.length) {
    for (let head = 0; head < range.length; head += headSize) {
      for (let at = head; at < head + half; at++) {
        const length = Math.sqrt(rows[from + at]! ** 2 + rows[from + at + half]! ** 2);
        if (length > range[at]!) range[at] = range[at + half] = length;
      }
    }
  }
}
