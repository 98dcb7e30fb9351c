import { BatchBuilder } from './batch.js';
import type { DecoderRunner } from './decoder-runner.js';
import type { EncoderBatch, EncoderRunner, EncoderShape } from './encoder-runner.js';
import type { JudgeTokens } from './engine.js';
import { KvCache } from './kv-cache.js';

/**
 * Runs a decoder once over whole sequences: a row is the logit of yes over no as the token that follows, so that its
 * sigmoid is the share of yes in the two.
 */
export class JudgeRunner implements EncoderRunner {
  readonly shape: EncoderShape;
  readonly #runner: DecoderRunner;
  readonly #answers: JudgeTokens;
  readonly #batches: BatchBuilder;

  constructor(runner: DecoderRunner, shape: EncoderShape, answers: JudgeTokens) {
    this.shape = shape;
    this.#runner = runner;
    this.#answers = answers;
    this.#batches = new BatchBuilder(runner.shape.heads / runner.shape.kvHeads);
  }

  async run({ rows, width, inputIds, attentionMask }: EncoderBatch): Promise<Float32Array> {
    const sequences = Array.from({ length: rows }, (_, row) => {
      const mask = attentionMask.subarray(row * width, (row + 1) * width);
      const length = mask.lastIndexOf(1n) + 1;
      return { cached: 0, tokens: Array.from(inputIds.subarray(row * width, row * width + length), Number) };
    });
    const cache = emptyCache(this.#runner, rows);
    const inputs = this.#batches.build(sequences, cache.capacity);
    const { logits } = await this.#runner.run({ ...inputs, past: cache.view(0, rows) });
    const vocabulary = logits.length / rows;
    const { yes, no } = this.#answers;
    return Float32Array.from(
      sequences,
      (_, row) => logits[row * vocabulary + yes]! - logits[row * vocabulary + no]!,
    );
  }

  async close(): Promise<void> {
    await this.#runner.close();
  }
}

/** The graph wants a cache of at least one position; nothing is in it. */
function emptyCache({ shape }: DecoderRunner, rows: number): KvCache {
  const cache = new KvCache({ shape, slots: rows, contextLength: 1, maxBytes: Number.MAX_VALUE });
  cache.fit({ rows, longest: 1, limit: 1 });
  return cache;
}
