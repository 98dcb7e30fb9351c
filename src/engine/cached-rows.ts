import type { DecoderShape } from './decoder-runner.js';
import { bytesPerPosition, KvCache } from './kv-cache.js';
import type { KvLayer, KvTensor } from './kv-plane.js';
import { PrefixCache } from './prefix-cache.js';
import type { PromptCuts } from './prompt-cuts.js';
import type { GenerateRequest } from './request.js';
import type { RowCopy, Scheduler } from './scheduler.js';
import type { Sequence } from './sequence.js';
import type { Stopwatch } from './stopwatch.js';

export interface CachedRowsOptions {
  readonly shape: DecoderShape;
  readonly slots: number;
  readonly contextLength: number;
  readonly kvBytes: number;
  /** For the beginnings of prompts; none are kept with 0. */
  readonly prefixBytes: number;
  readonly cuts: PromptCuts;
  /** Takes the time of what is done here. */
  readonly stopwatch: Pick<Stopwatch<'copy'>, 'time'>;
}

/**
 * Keys and values of the scheduler's sequences, in the order of their rows, and of the beginnings of prompts that others
 * may begin with.
 */
export class CachedRows {
  readonly #cache: KvCache;
  readonly #prefixes: PrefixCache;
  readonly #cuts: PromptCuts;
  readonly #stopwatch: CachedRowsOptions['stopwatch'];

  constructor(options: CachedRowsOptions) {
    const { shape, slots, contextLength, kvBytes, prefixBytes, cuts, stopwatch } = options;
    this.#cache = new KvCache({ shape, slots, contextLength, maxBytes: kvBytes });
    this.#prefixes = new PrefixCache({
      cuts,
      chunkBytes: cuts.chunk * bytesPerPosition(shape),
      maxBytes: prefixBytes,
    });
    this.#cuts = cuts;
    this.#stopwatch = stopwatch;
  }

  get bytesUsed(): number {
    return this.#cache.bytesUsed;
  }

  get prefixBytesUsed(): number {
    return this.#prefixes.bytesUsed;
  }

  /** Brings the rows in line with the scheduler's, with room for at least `positions` in each. */
  fit({ rows, limit }: Pick<Scheduler, 'rows' | 'limit'>, positions = 0): void {
    const longest = rows.reduce((most, { cached }) => Math.max(most, cached), positions);
    this.#stopwatch.time('copy', () => this.#cache.fit({ rows: rows.length, longest, limit }));
  }

  /** Rows first..first+count-1 as the graph takes and changes them. */
  view(first: number, count: number): readonly KvLayer<KvTensor>[] {
    return this.#cache.view(first, count);
  }

  /** Says that a run of the graph has put `tokens` new positions behind those of a sequence. */
  advance(sequence: Sequence, tokens: number): void {
    this.#cache.advance(sequence.row, tokens);
    sequence.cached += tokens;
  }

  copy(copies: readonly RowCopy[]): void {
    this.#stopwatch.time('copy', () => {
      for (const { from, to } of copies) this.#cache.copyRow(from, to);
    });
  }

  /** Tokens at the beginning of a prompt that need not be read. */
  restorable({ scope, prompt }: GenerateRequest): number {
    return this.#prefixes.find(scope, prompt).length * this.#cuts.chunk;
  }

  /** Copies as much of a prompt's beginning into its row as the scheduler has counted in. */
  restore({ generation, row, cached }: Sequence): void {
    if (cached === 0) return;
    const { scope, prompt } = generation.request;
    this.#stopwatch.time('copy', () => {
      for (const chunk of this.#prefixes.find(scope, prompt)) {
        this.#cache.restore(row, this.#cuts.chunk, chunk);
      }
    });
  }

  /** Keeps the chunks of a prompt that its last `tokens` tokens have completed. */
  keep({ generation, row, cached }: Sequence, tokens: number): void {
    const { scope, prompt } = generation.request;
    const { chunk } = this.#cuts;
    this.#stopwatch.time('copy', () => {
      for (let end = cached - tokens + chunk; end <= cached; end += chunk) {
        this.#prefixes.add(scope, prompt, end / chunk - 1, (bytes) => {
          this.#cache.read(row, end - chunk, chunk, bytes);
        });
      }
    });
  }
}
