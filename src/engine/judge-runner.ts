import { BatchBuilder } from './batch.js';
import type { DecoderRunner } from './decoder-runner.js';
import type { EncoderBatch, EncoderRunner, EncoderShape } from './encoder-runner.js';
import type { JudgeTokens } from './engine.js';
import { KvCache } from './kv-cache.js';

export interface JudgeRunnerOptions {
  readonly runner: DecoderRunner;
  readonly shape: EncoderShape;
  readonly answers: JudgeTokens;
  /** Tokens of a sequence that are read in one run at most. */
  readonly chunkTokens: number;
}

/**
 * Runs a decoder over whole sequences: a row is the logit of yes over no as the token that follows, so that its
 * sigmoid is the share of yes in the two. Long sequences are read in chunks, as prompts are: what one run takes of
 * memory grows with the square of its length.
 */
export class JudgeRunner implements EncoderRunner {
  readonly shape: EncoderShape;
  readonly #runner: DecoderRunner;
  readonly #answers: JudgeTokens;
  readonly #chunkTokens: number;
  readonly #batches: BatchBuilder;

  constructor({ runner, shape, answers, chunkTokens }: JudgeRunnerOptions) {
    this.shape = shape;
    this.#runner = runner;
    this.#answers = answers;
    this.#chunkTokens = chunkTokens;
    this.#batches = new BatchBuilder(runner.shape.heads / runner.shape.kvHeads);
  }

  async run(batch: EncoderBatch): Promise<Float32Array> {
    const sequences = sequencesOf(batch);
    const longest = Math.max(...sequences.map(({ length }) => length));
    const cache = this.#cacheFor(sequences.length, longest);
    const judged = new Float32Array(sequences.length);
    for (let from = 0; from < longest; from += this.#chunkTokens) {
      const to = from + this.#chunkTokens;
      const logits = await this.#read(sequences, { from, to, cache, isLast: to >= longest });
      for (const [row, { length }] of sequences.entries()) {
        if (length > from && length <= to) judged[row] = this.#judge(logits, row, sequences.length);
      }
    }
    return judged;
  }

  async close(): Promise<void> {
    await this.#runner.close();
  }

  /** Room for all that is read before the last chunk; the graph wants at least one position. */
  #cacheFor(rows: number, longest: number): KvCache {
    const positions = Math.floor((longest - 1) / this.#chunkTokens) * this.#chunkTokens;
    const { shape } = this.#runner;
    const contextLength = Math.max(1, positions);
    const cache = new KvCache({ shape, slots: rows, contextLength, maxBytes: Number.MAX_VALUE });
    cache.fit({ rows, longest: 1, limit: 1 });
    return cache;
  }

  /** Reads tokens `from`..`to` of the sequences that have so many; returns the logits of their last ones. */
  async #read(
    sequences: readonly number[][],
    { from, to, cache, isLast }: { from: number; to: number; cache: KvCache; isLast: boolean },
  ): Promise<Float32Array> {
    const rows = sequences.map((sequence) => {
      const tokens = sequence.slice(from, to);
      return { cached: tokens.length > 0 ? from : 0, tokens };
    });
    const inputs = this.#batches.build(rows, cache.capacity);
    const past = cache.view(0, rows.length);
    const { logits, ...output } = await this.#runner.run({ ...inputs, past });
    if (!isLast) {
      const parts = rows.flatMap(({ tokens }, row) =>
        tokens.length > 0 ? [{ row, outputRow: row, tokens: tokens.length }] : [],
      );
      cache.fit({ rows: rows.length, longest: to, limit: to });
      cache.append(output, inputs.width, parts);
    }
    return logits;
  }

  #judge(logits: Float32Array, row: number, rows: number): number {
    const vocabulary = logits.length / rows;
    const { yes, no } = this.#answers;
    return logits[row * vocabulary + yes]! - logits[row * vocabulary + no]!;
  }
}

function sequencesOf({ rows, width, inputIds, attentionMask }: EncoderBatch): number[][] {
  return Array.from({ length: rows }, (_, row) => {
    const mask = attentionMask.subarray(row * width, (row + 1) * width);
    const length = mask.lastIndexOf(1n) + 1;
    return Array.from(inputIds.subarray(row * width, row * width + length), Number);
  });
}
