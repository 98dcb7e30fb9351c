import type { DecoderRunner } from '../../engine/decoder-runner.js';
import { type Agreement, AgreementSum, predictionOf } from './agreement.js';
import { ForcedDecoding } from './forced-decoding.js';

export interface EvaluateOptions {
  /** The same model in different forms; the first one is the reference. */
  readonly runners: readonly DecoderRunner[];
  readonly tokens: Int32Array;
  /** What stands before every text for this model; often nothing. */
  readonly begin: Int32Array;
  /** Tokens of a row, those of `begin` included. */
  readonly windowTokens: number;
  /** Rows run together. */
  readonly rows: number;
  /** Called with the share of the work that is done, 0..1. */
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
}

export interface Evaluation extends Agreement {
  /** Tokens through the graph in a second, `rows` at a time. */
  readonly tokensPerSecond: number;
}

/**
 * Cuts a text into windows and has every runner predict each next token of them, side by side, so that no more than
 * one position's predictions are in memory. What is left over at the end, too short for a window, is not used.
 * @throws Error when the text is shorter than one window
 */
export async function evaluateFormats(options: EvaluateOptions): Promise<Evaluation[]> {
  const { runners, tokens, begin, windowTokens, signal, onProgress } = options;
  const windows = cutWindows(tokens, begin, windowTokens);
  if (windows.length === 0) {
    throw new Error(`The text has ${tokens.length} tokens; at least ${windowTokens} are needed.`);
  }
  const sums = runners.map(() => new AgreementSum());
  const runMs = runners.map(() => 0);
  for (let first = 0; first < windows.length; first += options.rows) {
    const batch = windows.slice(first, first + options.rows);
    const decodings = runners.map(
      (runner) => new ForcedDecoding(runner, { rows: batch.length, positions: windowTokens }),
    );
    for (let position = 0; position + 1 < windowTokens; position++) {
      signal.throwIfAborted();
      const given = batch.map((window) => window[position]!);
      const logits: Float32Array[] = [];
      for (const decoding of decodings) logits.push(await decoding.step(given));
      const isScored = position + 1 >= begin.length;
      for (const [row, window] of isScored ? batch.entries() : []) {
        const predictions = logits.map((all) => predictionOf(rowOf(all, row, batch.length)));
        for (const [index, prediction] of predictions.entries()) {
          sums[index]!.add(prediction, predictions[0]!, window[position + 1]!);
        }
      }
      onProgress((first + (batch.length * (position + 1)) / windowTokens) / windows.length);
    }
    for (const [index, decoding] of decodings.entries()) runMs[index]! += decoding.runMs;
  }
  const run = windows.length * (windowTokens - 1);
  return sums.map((sum, index) => ({ ...sum.result(), tokensPerSecond: (run * 1000) / runMs[index]! }));
}

function cutWindows(tokens: Int32Array, begin: Int32Array, windowTokens: number): number[][] {
  const size = windowTokens - begin.length;
  return Array.from({ length: Math.floor(tokens.length / size) }, (_, window) => [
    ...begin,
    ...tokens.subarray(window * size, (window + 1) * size),
  ]);
}

function rowOf(logits: Float32Array, row: number, rows: number): Float32Array {
  const width = logits.length / rows;
  return logits.subarray(row * width, (row + 1) * width);
}
