import { ServiceError } from '../contract/errors.js';
import type { RerankJob } from '../contract/job.js';
import type { EncoderManifest } from '../models/manifest.js';
import { abortable } from '../platform/abortable.js';
import { chunks } from './chunks.js';
import type { EngineRuns } from './engine-runs.js';
import type { HeldRequest } from './held-request.js';
import { cosineRelevance, sigmoid } from './relevance.js';
import type { FormattedSequence } from './sequence-format.js';
import type { Tokenizer } from './tokenizer.js';

export interface RerankRunnerOptions {
  readonly manifest: EncoderManifest;
  readonly tokenizer: Tokenizer;
  readonly runs: EngineRuns;
  /** Positions of one sequence, control tokens included. */
  readonly contextLength: number;
  /** Tokens handed to the engine together; the next such batch is prepared while one runs. */
  readonly batchTokens?: number;
  /** Documents, and their characters, that are tokenized together: between two such slices a request can end. */
  readonly sliceDocuments?: number;
  readonly sliceCharacters?: number;
}

/** Document chunks on their way through the engine, each with the document it is of. */
interface Batch {
  readonly sequences: FormattedSequence[];
  readonly documents: number[];
  tokens: number;
}

/** How a query is compared with a chunk. */
interface Comparison {
  /** Document tokens of a chunk at most. */
  readonly chunkSize: number;
  format(chunk: Int32Array): FormattedSequence;
  /** Relevance, within 0..1, from the chunk's row. */
  score(row: Float32Array): number;
}

/** Answers rerank requests: the relevance of a document is that of its best chunk. */
export class RerankRunner {
  readonly #options: Required<RerankRunnerOptions>;

  constructor(options: RerankRunnerOptions) {
    this.#options = { batchTokens: 16_384, sliceDocuments: 128, sliceCharacters: 65_536, ...options };
  }

  /**
   * Sends the frame of the answer.
   * @throws ServiceError when the request cannot be answered; the reason of the request's signal when it ends early.
   */
  async run(job: RerankJob, request: HeldRequest): Promise<void> {
    const query = await abortable(this.#options.tokenizer.encode(job.query), request.signal);
    const comparison =
      this.#options.manifest.scoring === 'cross-encoder'
        ? this.#crossEncoder(query)
        : await this.#biEncoder(query, request);
    const scores = new Array<number>(job.documents.length).fill(0);

    let running: Promise<void> = Promise.resolve();
    for await (const batch of this.#batches(job, comparison, request.signal)) {
      await running;
      running = this.#score(batch, comparison, scores, request);
      // Awaited when the next batch is ready; until then its failure has a listener.
      running.catch(() => {});
    }
    await running;
    request.reply.send({ type: 'ranked', scores, spent: request.spent, timings: request.timings() });
  }

  #crossEncoder(query: Int32Array): Comparison {
    const { contextLength, tokenizer } = this.#options;
    const chunkSize = contextLength - tokenizer.format.pairOverhead - query.length;
    if (chunkSize < 1) {
      throw new ServiceError(
        'invalidParameter',
        `query: its ${query.length} tokens leave no room for a document in the context of ${contextLength}`,
      );
    }
    return {
      chunkSize,
      format: (chunk) => tokenizer.format.pair(query, chunk),
      score: ([logit]) => sigmoid(logit!),
    };
  }

  async #biEncoder(query: Int32Array, request: HeldRequest): Promise<Comparison> {
    const { contextLength, tokenizer } = this.#options;
    const chunkSize = contextLength - tokenizer.format.singleOverhead;
    if (query.length > chunkSize) {
      throw new ServiceError(
        'invalidParameter',
        `query: its ${query.length} tokens do not fit in the context of ${contextLength}`,
      );
    }
    const embedding = await this.#encode([tokenizer.format.single(query)], request);
    return {
      chunkSize,
      format: (chunk) => tokenizer.format.single(chunk),
      score: (row) => cosineRelevance(embedding, row),
    };
  }

  /** The chunks of all documents, tokenized a slice at a time and gathered into batches for the engine. */
  async *#batches(job: RerankJob, comparison: Comparison, signal: AbortSignal): AsyncGenerator<Batch> {
    const { tokenizer, batchTokens } = this.#options;
    const options = { size: comparison.chunkSize, overlap: job.overlapTokens, max: job.maxChunksPerDoc };
    let batch: Batch = { sequences: [], documents: [], tokens: 0 };
    for (const { first, texts } of this.#slices(job.documents)) {
      const encoded = await abortable(tokenizer.encodeBatch(texts), signal);
      for (const [offset, tokens] of encoded.entries()) {
        checkOverlap(tokens.length, options);
        for (const chunk of chunks(tokens, options)) {
          const sequence = comparison.format(chunk);
          batch.sequences.push(sequence);
          batch.documents.push(first + offset);
          batch.tokens += sequence.tokens.length;
          if (batch.tokens < batchTokens) continue;
          yield batch;
          batch = { sequences: [], documents: [], tokens: 0 };
        }
      }
    }
    if (batch.sequences.length > 0) yield batch;
  }

  *#slices(documents: readonly string[]): Generator<{ first: number; texts: string[] }> {
    const { sliceDocuments, sliceCharacters } = this.#options;
    let texts: string[] = [];
    let characters = 0;
    for (const [index, document] of documents.entries()) {
      texts.push(document);
      characters += document.length;
      const isLast = index === documents.length - 1;
      if (!isLast && texts.length < sliceDocuments && characters < sliceCharacters) continue;
      yield { first: index + 1 - texts.length, texts };
      texts = [];
      characters = 0;
    }
  }

  async #score(
    { sequences, documents }: Batch,
    comparison: Comparison,
    scores: number[],
    request: HeldRequest,
  ): Promise<void> {
    const { dimension } = this.#options.manifest;
    const rows = await this.#encode(sequences, request);
    request.markFirstToken();
    for (const [index, document] of documents.entries()) {
      const score = comparison.score(rows.subarray(index * dimension, (index + 1) * dimension));
      if (!Number.isFinite(score)) throw new Error('The model gave a score that is not a number.');
      scores[document] = Math.max(scores[document]!, score);
    }
  }

  async #encode(sequences: readonly FormattedSequence[], request: HeldRequest): Promise<Float32Array> {
    const { manifest, runs } = this.#options;
    const rows = await runs.encode(
      {
        sequences: manifest.tokenTypes ? sequences : sequences.map(({ tokens }) => ({ tokens })),
        priority: request.job.priority,
      },
      request.signal,
      () => {
        request.admitted = true;
      },
    );
    const tokens = sequences.reduce((sum, sequence) => sum + sequence.tokens.length, 0);
    request.spent = { ...request.spent, promptTokens: request.spent.promptTokens + tokens };
    return rows;
  }
}

/** Chunks that shared all their tokens with the one before would never reach a document's end. */
function checkOverlap(
  tokens: number,
  { size, overlap, max }: { size: number; overlap: number; max: number },
): void {
  if (tokens <= size || max === 1 || overlap < size) return;
  throw new ServiceError(
    'invalidParameter',
    `overlap_tokens: chunks beside this query have ${size} tokens and cannot overlap by ${overlap}`,
  );
}
