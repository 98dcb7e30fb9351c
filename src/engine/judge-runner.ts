import { BatchBuilder, type BatchRow } from './batch.js';
import type { DecoderRunner } from './decoder-runner.js';
import type { EncoderBatch, EncoderRunner, EncoderShape } from './encoder-runner.js';
import type { JudgeTokens } from './engine.js';
import { bytesPerPosition, KvCache } from './kv-cache.js';
import type { KvLayer, KvTensor } from './kv-plane.js';

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
  readonly #batches = new BatchBuilder();
  #cache: KvCache | undefined;
  /** What the cache has room for, over all rows. */
  #positions = 0;

  constructor({ runner, shape, answers, chunkTokens }: JudgeRunnerOptions) {
    this.shape = shape;
    this.#runner = runner;
    this.#answers = answers;
    this.#chunkTokens = chunkTokens;
  }

  async run(batch: EncoderBatch): Promise<Float32Array> {
    const sequences = sequencesOf(batch);
    const chunk = this.#chunkTokens;
    const longest = Math.max(...sequences.map(({ length }) => length));
    const cache = this.#roomFor(sequences.length, longest);
    const beginnings = sequences.map((sequence) => ({ cached: 0, tokens: sequence.slice(0, chunk) }));
    const judged = await this.#read(beginnings, cache.view(0, sequences.length));
    for (const [row, sequence] of sequences.entries()) {
      for (let cached = chunk; cached < sequence.length; cached += chunk) {
        const piece = { cached, tokens: sequence.slice(cached, cached + chunk) };
        judged.set(await this.#read([piece], cache.view(row, 1)), row);
      }
    }
    return judged;
  }

  async close(): Promise<void> {
    await this.#runner.close();
  }

  /** A cache for `rows` rows of `positions`, the one of the last run where it is large enough. */
  #roomFor(rows: number, positions: number): KvCache {
    const needed = rows * positions;
    if (!this.#cache || this.#positions < needed) {
      const { shape } = this.#runner;
      // As many slots as there are positions: what counts is their product with the length of the longest.
      this.#cache = new KvCache({
        shape,
        slots: needed,
        contextLength: needed,
        maxBytes: needed * bytesPerPosition(shape),
      });
      this.#positions = needed;
    }
    this.#cache.fit({ rows, longest: positions, limit: positions });
    return this.#cache;
  }

  /** Reads pieces of sequences together, behind what the cache has of one only that one; what is judged by each. */
  async #read(pieces: readonly BatchRow[], cache: readonly KvLayer<KvTensor>[]): Promise<Float32Array> {
    const { vocabularySize } = this.#runner.shape;
    const { yes, no } = this.#answers;
    const { whole } = await this.#runner.run({ ...this.#batches.build(pieces), cache });
    return Float32Array.from(pieces, (_, row) => {
      const own = whole.logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
      return own[yes]! - own[no]!;
    });
  }
}

function sequencesOf({ rows, width, inputIds, attentionMask }: EncoderBatch): number[][] {
  return Array.from({ length: rows }, (_, row) => {
    const mask = attentionMask.subarray(row * width, (row + 1) * width);
    const length = mask.lastIndexOf(1n) + 1;
    return Array.from(inputIds.subarray(row * width, row * width + length), Number);
  });
}
