import { BatchBuilder } from '../../engine/batch.js';
import type { DecoderRunner } from '../../engine/decoder-runner.js';
import { KvCache } from '../../engine/kv-cache.js';

/**
 * A decoder that is told each token instead of drawing it: rows of given text, all one position further at every
 * step, as requests are decoded together. So what is measured is what serves.
 */
export class ForcedDecoding {
  readonly #runner: DecoderRunner;
  readonly #rows: number;
  readonly #positions: number;
  readonly #cache: KvCache;
  readonly #batches = new BatchBuilder();
  #cached = 0;
  #runMs = 0;

  /** Room for `rows` rows of `positions` tokens. */
  constructor(runner: DecoderRunner, { rows, positions }: { rows: number; positions: number }) {
    const { shape } = runner;
    this.#runner = runner;
    this.#rows = rows;
    this.#positions = positions;
    this.#cache = new KvCache({ shape, slots: rows, contextLength: positions, maxBytes: Number.MAX_VALUE });
  }

  /** Time spent in the graph so far. */
  get runMs(): number {
    return this.#runMs;
  }

  /**
   * Feeds the next token of every row.
   * @returns the logits that follow them, [rows, vocabularySize], until the next step
   */
  async step(tokens: readonly number[]): Promise<Float32Array> {
    this.#cache.fit({ rows: this.#rows, longest: this.#cached + 1, limit: this.#positions });
    const inputs = this.#batches.build(tokens.map((token) => ({ cached: this.#cached, tokens: [token] })));
    const start = performance.now();
    const output = await this.#runner.run({ ...inputs, cache: this.#cache.view(0, this.#rows) });
    this.#runMs += performance.now() - start;
    for (const row of tokens.keys()) this.#cache.advance(row, 1);
    this.#cached++;
    return output.whole.logits;
  }
}
