import { BatchBuilder, type BatchRow } from './batch.js';
import type { DecoderOutput, DecoderRunner } from './decoder-runner.js';
import type { EncoderBatch, EncoderRunner, EncoderShape } from './encoder-runner.js';
import type { JudgeTokens } from './engine.js';
import { KvCache, noPast } from './kv-cache.js';

export interface JudgeRunnerOptions {
  readonly runner: DecoderRunner;
  readonly shape: EncoderShape;
  readonly answers: JudgeTokens;
  /** Tokens of a sequence that are read in one run at most. */
  readonly chunkTokens: number;
}

/** What pieces of sequences gave, `width` tokens each. */
interface Piece extends DecoderOutput {
  readonly width: number;
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

  constructor({ runner, shape, answers, chunkTokens }: JudgeRunnerOptions) {
    this.shape = shape;
    this.#runner = runner;
    this.#answers = answers;
    this.#chunkTokens = chunkTokens;
  }

  async run(batch: EncoderBatch): Promise<Float32Array> {
    const sequences = sequencesOf(batch);
    const chunk = this.#chunkTokens;
    const first = await this.#read(
      sequences.map((sequence) => ({ cached: 0, tokens: sequence.slice(0, chunk) })),
    );
    const judged = new Float32Array(sequences.length);
    // One after the other: they share the arrays of the inputs, and one cache at a time is enough.
    for (const [row, sequence] of sequences.entries()) {
      const isRead = sequence.length <= chunk;
      judged[row] = isRead ? this.#judge(first.logits, row) : await this.#readOn(sequence, row, first);
    }
    return judged;
  }

  async close(): Promise<void> {
    await this.#runner.close();
  }

  /** Reads pieces of sequences together; behind `past` only one piece at a time. */
  async #read(pieces: readonly BatchRow[], past = noPast(this.#runner.shape, pieces.length)): Promise<Piece> {
    const inputs = this.#batches.build(pieces);
    return { ...(await this.#runner.run({ ...inputs, past })), width: inputs.width };
  }

  /** Reads the rest of a sequence, whose beginning is row `row` of `beginning`, one piece after the other. */
  async #readOn(sequence: readonly number[], row: number, beginning: Piece): Promise<number> {
    const { shape } = this.#runner;
    const chunk = this.#chunkTokens;
    const positions = Math.floor((sequence.length - 1) / chunk) * chunk;
    const cache = new KvCache({ shape, slots: 1, contextLength: positions, maxBytes: Number.MAX_VALUE });
    cache.fit({ rows: 1, longest: positions, limit: positions });
    let last = beginning;
    let outputRow = row;
    for (let cached = chunk; cached < sequence.length; cached += chunk) {
      cache.append(last, last.width, [{ row: 0, outputRow, tokens: chunk }]);
      last = await this.#read([{ cached, tokens: sequence.slice(cached, cached + chunk) }], cache.view(0, 1));
      outputRow = 0;
    }
    return this.#judge(last.logits, outputRow);
  }

  #judge(logits: Float32Array, row: number): number {
    const { vocabularySize } = this.#runner.shape;
    const { yes, no } = this.#answers;
    return logits[row * vocabularySize + yes]! - logits[row * vocabularySize + no]!;
  }
}

function sequencesOf({ rows, width, inputIds, attentionMask }: EncoderBatch): number[][] {
  return Array.from({ length: rows }, (_, row) => {
    const mask = attentionMask.subarray(row * width, (row + 1) * width);
    const length = mask.lastIndexOf(1n) + 1;
    return Array.from(inputIds.subarray(row * width, row * width + length), Number);
  });
}
