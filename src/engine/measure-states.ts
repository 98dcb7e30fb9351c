import { setImmediate } from 'node:timers/promises';
import { BatchBuilder } from './batch.js';
import type { DecoderShape } from './decoder-runner.js';
import { KvCache } from './kv-cache.js';
import { decoderFeeds } from './onnx-decoder-runner.js';
import { OnnxSession } from './onnx-session.js';

/**
 * How far a layer's keys and values reach, and what attention mixes of the values, by element in the order of their
 * heads. Of keys it is the largest length of the pair that rotary positions turn, for both its elements: at some other
 * position either may be as large. Of the others it is the largest magnitude.
 */
export interface StateRange {
  readonly key: Float32Array;
  readonly value: Float32Array;
  readonly mixed: Float32Array;
  /** The largest magnitude of each row that is projected down, in no order; nothing where the graph does not tell. */
  readonly down: Float32Array;
}

export interface MeasureStatesOptions {
  /**
   * A decoder's graph whose outputs are `key.L`, `value.L` and `mixed.L`, float32 [B, S, its width], and
   * perhaps `down.L`, float32 [B * S, 1].
   */
  readonly graph: string;
  readonly shape: DecoderShape;
  readonly sequences: readonly Int32Array[];
  readonly threads: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a decoder over sequences of tokens and finds how far its keys and values reach.
 * @throws Error when the graph cannot be run; the signal's reason when it aborts
 */
export async function measureStates(options: MeasureStatesOptions): Promise<StateRange[]> {
  const { shape, signal } = options;
  const ranges = Array.from({ length: shape.layers }, () => ({
    key: new Float32Array(shape.kvHeads * shape.headSize),
    value: new Float32Array(shape.kvHeads * shape.headSize),
    mixed: new Float32Array(shape.heads * shape.headSize),
    down: new Float32Array(0),
  }));
  const session = await OnnxSession.open(options.graph, { threads: options.threads });
  try {
    const batches = new BatchBuilder();
    for (const tokens of options.sequences) {
      // A run blocks the thread; whoever wants to abort must have a turn.
      await setImmediate();
      signal?.throwIfAborted();
      const { length } = tokens;
      const cache = new KvCache({ shape, slots: 1, contextLength: length, maxBytes: Number.MAX_VALUE });
      cache.fit({ rows: 1, longest: length, limit: length });
      const inputs = batches.build([{ cached: 0, tokens }]);
      const outputs = await session.run(decoderFeeds({ ...inputs, cache: cache.view(0, 1) }));
      for (const [layer, range] of ranges.entries()) {
        const rows = (part: keyof StateRange) => outputs[`${part}.${layer}`]!.data as Float32Array;
        widenPairs(range.key, rows('key'), shape.headSize);
        for (const part of ['value', 'mixed'] as const) widen(range[part], rows(part));
        if (outputs[`down.${layer}`]) range.down = Float32Array.from([...range.down, ...rows('down')]);
      }
    }
  } finally {
    await session.close();
  }
  return ranges;
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
