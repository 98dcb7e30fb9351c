import { DecoderEngine } from '../../engine/decoder-engine.js';
import type { DecoderBatch, DecoderOutput, DecoderRunner } from '../../engine/decoder-runner.js';
import { bytesPerPosition } from '../../engine/kv-cache.js';
import type { GenerateRequest } from '../../engine/request.js';
import type { DecoderManifest } from '../../models/manifest.js';
import type { DecoderCase } from './reference-cases.js';

/** How a decoder did on one case. */
export interface DecoderResult {
  /** The largest difference of the logits after the prompt. */
  readonly largest_error: number;
  readonly greedy_ids: readonly number[];
  readonly greedy_equal: boolean;
}

/** Runs the cases, one after the other, through the engine that serves requests. */
export async function checkDecoder(
  runner: DecoderRunner,
  manifest: DecoderManifest,
  cases: readonly DecoderCase[],
): Promise<DecoderResult[]> {
  const recorder = new RecordingRunner(runner);
  const longest = Math.max(...cases.map((one) => one.prompt_ids.length + one.greedy_ids.length));
  const engine = new DecoderEngine(recorder, {
    maxSequences: 1,
    contextLength: longest,
    kvBytes: longest * bytesPerPosition(manifest),
    maxBatchTokens: longest,
    chunkTokens: longest,
    prefixBytes: 0,
  });
  const results: DecoderResult[] = [];
  for (const [index, { prompt_ids, greedy_ids, last_logits }] of cases.entries()) {
    engine.generate(greedyRequest(String(index), prompt_ids, greedy_ids.length));
    const tokens: number[] = [];
    let logits: Float32Array | undefined;
    while (engine.busy) {
      for (const event of await engine.step()) {
        if (event.type === 'failed') throw new Error(`Case ${index}: ${event.reason}`);
        if (event.type !== 'token') continue;
        logits ??= recorder.logits;
        tokens.push(event.token);
      }
    }
    results.push({
      largest_error: largestDifference(logits ?? [], last_logits),
      greedy_ids: tokens,
      greedy_equal: tokens.join() === greedy_ids.join(),
    });
  }
  return results;
}

function greedyRequest(id: string, prompt: readonly number[], maxTokens: number): GenerateRequest {
  return {
    id,
    scope: '',
    prompt: Int32Array.from(prompt),
    maxTokens,
    choices: 1,
    sampling: {
      temperature: 0,
      topP: 1,
      topK: -1,
      minP: 0,
      frequencyPenalty: 0,
      presencePenalty: 0,
      seed: 0,
      logitBias: [],
    },
    // The reference goes on after the end of a turn.
    endTokens: [],
    priority: 'interactive',
  };
}

/** The largest difference of two lists; infinite when their lengths differ. */
export function largestDifference(actual: ArrayLike<number>, expected: readonly number[]): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  return expected.reduce((most, value, at) => Math.max(most, Math.abs(value - actual[at]!)), 0);
}

/** Keeps the logits of the last run, which the engine does not show. */
class RecordingRunner implements DecoderRunner {
  readonly #runner: DecoderRunner;
  logits = new Float32Array(0);

  constructor(runner: DecoderRunner) {
    this.#runner = runner;
  }

  get shape() {
    return this.#runner.shape;
  }

  async run(batch: DecoderBatch): Promise<DecoderOutput> {
    // The engine is content with the largest logits of a greedy request; the reference has all of them.
    const whole = BigInt64Array.from(batch.wanted, (_, place) => BigInt(place));
    const output = await this.#runner.run({ ...batch, whole });
    this.logits = output.whole.logits.slice();
    return output;
  }

  close(): Promise<void> {
    return this.#runner.close();
  }
}
