import { ServiceError } from '../contract/errors.js';
import type { RerankJob } from '../contract/job.js';
import type { EncoderManifest } from '../models/manifest.js';
import { type ChunkOptions, chunks, tokensOfChunks } from './chunks.js';
import type { EngineRuns } from './engine-runs.js';
import type { HeldRequest } from './held-request.js';
import { documentLead, JudgeFormat } from './judge-format.js';
import { cosineRelevance, sigmoid } from './relevance.js';
import type { Reservations } from './reservations.js';
import type { FormattedSequence } from './sequence-format.js';
import { TextReader } from './text-reader.js';
import type { Tokenizer } from './tokenizer.js';

export interface RerankRunnerOptions {
  readonly manifest: EncoderManifest;
  readonly tokenizer: Tokenizer;
  readonly runs: EngineRuns;
  /** Absent where there is no database: what was estimated is all that counts then, until the request ends. */
  readonly reservations?: Pick<Reservations, 'cover'> | undefined;
  /** Positions of one sequence, control tokens included. */
  readonly contextLength: number;
  /** What a causal model is told to judge by, where it is not the usual. */
  readonly instruction?: string | undefined;
  /** Tokens handed to the engine together; the next such batch is prepared while one runs. */
  readonly batchTokens?: number;
  /** Documents, and their characters, that are tokenized together: between two such calls a request can end. */
  readonly callDocuments?: number;
  readonly callCharacters?: number;
}

/** Sequences on their way through the engine, each with whoever takes its row, called in this order. */
class Batch {
  readonly sequences: FormattedSequence[] = [];
  readonly takers: ((row: Float32Array) => void)[] = [];
  tokens = 0;

  add(sequence: FormattedSequence, take: (row: Float32Array) => void): void {
    this.sequences.push(sequence);
    this.takers.push(take);
    this.tokens += sequence.tokens.length;
  }
}

/** How a query is compared with a chunk. */
interface Comparison {
  /** Document tokens of a chunk at most. */
  readonly chunkSize: number;
  /** What a document is read with in front of it. */
  readonly lead: string;
  /** What is run once, ahead of the chunks. */
  readonly query?: { readonly sequence: FormattedSequence; readonly take: (row: Float32Array) => void };
  format(chunk: Int32Array): FormattedSequence;
  /** Relevance, within 0..1, from the chunk's row. */
  score(row: Float32Array): number;
}

/** Answers rerank requests: the relevance of a document is that of its best chunk. */
export class RerankRunner {
  readonly #options: RerankRunnerOptions & { readonly batchTokens: number };
  readonly #texts: TextReader;

  constructor(options: RerankRunnerOptions) {
    this.#options = { batchTokens: 16_384, ...options };
    this.#texts = new TextReader({
      tokenizer: options.tokenizer,
      callTexts: options.callDocuments ?? 128,
      callCharacters: options.callCharacters ?? 65_536,
    });
  }

  /**
   * Sends the frame of the answer.
   * @throws ServiceError when the request cannot be answered; the reason of the request's signal when it ends early.
   */
  async run(job: RerankJob, request: HeldRequest): Promise<void> {
    const { contextLength } = this.#options;
    const query = await this.#texts.tokensOf(job.query, { maxTokens: contextLength, signal: request.signal });
    const comparison = await this.#comparison(job.query, query);
    // By text: equal documents are run once, so that their scores are the same to the last bit.
    const best = new Map(job.documents.map((document) => [document, 0]));

    let running: Promise<void> = Promise.resolve();
    for await (const batch of this.#batches(job, { comparison, best, signal: request.signal })) {
      await running;
      running = this.#run(batch, request);
      // Awaited when the next batch is ready; until then its failure has a listener.
      running.catch(() => {});
    }
    await running;
    const scores = job.documents.map((document) => best.get(document)!);
    request.reply.send({ type: 'ranked', scores, spent: request.spent, timings: request.timings() });
  }

  async #comparison(text: string, query: Int32Array): Promise<Comparison> {
    const { scoring } = this.#options.manifest;
    switch (scoring) {
      case 'cross-encoder':
        return this.#crossEncoder(query);
      case 'bi-encoder':
        return this.#biEncoder(query);
      case 'judge':
        return await this.#judge(text, query);
      default:
        return scoring satisfies never;
    }
  }

  #crossEncoder(query: Int32Array): Comparison {
    const { tokenizer } = this.#options;
    return {
      chunkSize: this.#roomBeside(tokenizer.format.pairOverhead + query.length),
      lead: '',
      format: (chunk) => tokenizer.format.pair(query, chunk),
      score: ([logit]) => sigmoid(logit!),
    };
  }

  /** @throws ServiceError when the query alone fills the context; a text that long is not tokenized whole. */
  async #judge(text: string, query: Int32Array): Promise<Comparison> {
    const { tokenizer, instruction } = this.#options;
    this.#roomBeside(query.length);
    const format = await JudgeFormat.of(tokenizer, { instruction, query: text });
    return {
      chunkSize: this.#roomBeside(format.overhead),
      lead: documentLead,
      format: (chunk) => format.around(chunk),
      score: ([logit]) => sigmoid(logit!),
    };
  }

  /** Tokens that are left for a document. */
  #roomBeside(tokens: number): number {
    const { contextLength } = this.#options;
    if (tokens < contextLength) return contextLength - tokens;
    throw new ServiceError(
      'invalidParameter',
      `query: leaves no room for a document in the context of ${contextLength} tokens`,
    );
  }

  #biEncoder(query: Int32Array): Comparison {
    const { contextLength, tokenizer } = this.#options;
    const chunkSize = contextLength - tokenizer.format.singleOverhead;
    if (query.length > chunkSize) {
      throw new ServiceError(
        'invalidParameter',
        `query: does not fit in the context of ${contextLength} tokens`,
      );
    }
    let embedding = new Float32Array();
    return {
      chunkSize,
      lead: '',
      query: {
        sequence: tokenizer.format.single(query),
        take: (row) => {
          embedding = row.slice();
        },
      },
      format: (chunk) => tokenizer.format.single(chunk),
      score: (row) => cosineRelevance(embedding, row),
    };
  }

  /** The query and the chunks of all documents, in batches for the engine; `best` is raised by what comes of them. */
  async *#batches(
    { overlapTokens, maxChunksPerDoc }: RerankJob,
    options: { comparison: Comparison; best: Map<string, number>; signal: AbortSignal },
  ): AsyncGenerator<Batch> {
    const { comparison, best, signal } = options;
    const cut: ChunkOptions = { size: comparison.chunkSize, overlap: overlapTokens, max: maxChunksPerDoc };
    let batch = new Batch();
    if (comparison.query !== undefined) batch.add(comparison.query.sequence, comparison.query.take);
    const texts = [...best.keys()].map((text) => comparison.lead + text);
    for await (const readTexts of this.#texts.read(texts, { maxTokens: tokensOfChunks(cut), signal })) {
      for (const { text: read, tokens } of readTexts) {
        const text = read.slice(comparison.lead.length);
        checkOverlap(tokens.length, cut);
        const take = (row: Float32Array) => {
          const score = comparison.score(row);
          if (!Number.isFinite(score)) throw new Error('The model gave a score that is not a number.');
          best.set(text, Math.max(best.get(text)!, score));
        };
        for (const chunk of chunks(tokens, cut)) {
          batch.add(comparison.format(chunk), take);
          if (batch.tokens < this.#options.batchTokens) continue;
          yield batch;
          batch = new Batch();
        }
      }
    }
    if (batch.sequences.length > 0) yield batch;
  }

  async #run({ sequences, takers, tokens }: Batch, request: HeldRequest): Promise<void> {
    const { manifest, runs, reservations } = this.#options;
    await reservations?.cover(request, request.spent.promptTokens + tokens);
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
    request.spent = { ...request.spent, promptTokens: request.spent.promptTokens + tokens };
    request.markFirstToken();
    const { dimension } = manifest;
    for (const [index, take] of takers.entries()) {
      take(rows.subarray(index * dimension, (index + 1) * dimension));
    }
  }
}

/** Chunks that shared all their tokens with the one before would never reach a document's end. */
function checkOverlap(tokens: number, { size, overlap, max }: ChunkOptions): void {
  if (tokens <= size || max === 1 || overlap < size) return;
  throw new ServiceError(
    'invalidParameter',
    `overlap_tokens: chunks beside this query have ${size} tokens and cannot overlap by ${overlap}`,
  );
}
