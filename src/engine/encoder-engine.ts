import { encoderBatch } from './encoder-batch.js';
import type { EncoderRunner } from './encoder-runner.js';
import { type EncodeItem, EncoderScheduler, type Encoding } from './encoder-scheduler.js';
import type { StepEngine } from './engine-loop.js';
import type { EncodeRequest, EngineCounters, EngineEvent } from './request.js';

export interface EncoderEngineSettings {
  /** Tokens of one sequence at most. */
  readonly contextLength: number;
  /** Tokens of one run, padding included; a sequence that is longer runs alone. */
  readonly maxBatchTokens: number;
}

type Command =
  | { readonly type: 'encode'; readonly request: EncodeRequest }
  | { readonly type: 'cancel'; readonly id: string };

const maxFailedRuns = 3;

/** Batches sequences of all requests through an encoder, one run a step; a request's rows are sent all at once. */
export class EncoderEngine implements StepEngine {
  readonly #runner: EncoderRunner;
  readonly #settings: EncoderEngineSettings;
  readonly #scheduler: EncoderScheduler;
  readonly #encodings = new Map<string, Encoding>();
  readonly #inbox: Command[] = [];
  readonly #totals = { steps: 0, encodedTokens: 0, cancelled: 0 };
  #failedRuns = 0;

  constructor(runner: EncoderRunner, settings: EncoderEngineSettings) {
    this.#runner = runner;
    this.#settings = settings;
    this.#scheduler = new EncoderScheduler(settings.maxBatchTokens);
  }

  get busy(): boolean {
    return this.#inbox.length > 0 || this.#encodings.size > 0;
  }

  encode(request: EncodeRequest): void {
    this.#inbox.push({ type: 'encode', request });
  }

  cancel(id: string): void {
    this.#inbox.push({ type: 'cancel', id });
  }

  counters(): EngineCounters {
    return {
      running: this.#encodings.size,
      waiting: 0,
      slots: 0,
      kvBytesUsed: 0,
      kvBytesBudget: 0,
      kvPositions: 0,
      prefixBytesUsed: 0,
      cachedTokens: 0,
      prefillTokens: 0,
      decodeTokens: 0,
      draftTokens: 0,
      acceptedDraftTokens: 0,
      ...this.#totals,
    };
  }

  /**
   * One step: takes in what has arrived and runs one batch.
   * @throws Error when the runtime failed several times in a row; the engine is of no use after that.
   */
  async step(): Promise<EngineEvent[]> {
    const events: EngineEvent[] = [];
    this.#takeIn(events);
    const items = this.#scheduler.next();
    if (items) {
      this.#totals.steps++;
      announce(items, events);
      await this.#run(items, events);
    }
    return events;
  }

  #takeIn(events: EngineEvent[]): void {
    for (const command of this.#inbox.splice(0)) {
      switch (command.type) {
        case 'encode':
          this.#enqueue(command.request, events);
          break;
        case 'cancel': {
          const encoding = this.#encodings.get(command.id);
          if (encoding) {
            this.#totals.cancelled++;
            this.#forget(encoding);
          }
          events.push({ type: 'cancelled', id: command.id });
          break;
        }
        default:
          command satisfies never;
      }
    }
  }

  #enqueue(request: EncodeRequest, events: EngineEvent[]): void {
    const reason = this.#refusal(request);
    if (reason !== undefined) {
      events.push({ type: 'failed', id: request.id, reason });
      return;
    }
    const { sequences } = request;
    const encoding: Encoding = {
      request,
      rows: new Float32Array(sequences.length * this.#runner.shape.dimension),
      order: [...sequences.keys()].sort((a, b) => sequences[b]!.tokens.length - sequences[a]!.tokens.length),
      scheduled: 0,
      encoded: 0,
    };
    this.#encodings.set(request.id, encoding);
    this.#scheduler.enqueue(encoding);
  }

  /** Why a request could never run. */
  #refusal({ id, sequences }: EncodeRequest): string | undefined {
    const { vocabularySize, tokenTypes } = this.#runner.shape;
    const { contextLength } = this.#settings;
    if (this.#encodings.has(id)) return `a request with the id ${id} is already running`;
    if (sequences.length === 0) return 'there is no sequence to encode';
    for (const [index, { tokens, types }] of sequences.entries()) {
      if (tokens.length === 0) return `sequence ${index} is empty`;
      if (tokens.length > contextLength) {
        return `sequence ${index} has ${tokens.length} tokens, and the context ${contextLength}`;
      }
      if (tokenTypes && types?.length !== tokens.length)
        return `sequence ${index} needs a type for each token`;
      const stranger = tokens.find((token) => token < 0 || token >= vocabularySize);
      if (stranger !== undefined) return `token ${stranger} is not in a vocabulary of ${vocabularySize}`;
    }
    return undefined;
  }

  async #run(items: readonly EncodeItem[], events: EngineEvent[]): Promise<void> {
    const { dimension } = this.#runner.shape;
    try {
      const sequences = items.map(({ encoding, index }) => encoding.request.sequences[index]!);
      const rows = await this.#runner.run(encoderBatch(sequences, this.#runner.shape));
      this.#failedRuns = 0;
      for (const [row, { encoding, index }] of items.entries()) {
        encoding.rows.set(rows.subarray(row * dimension, (row + 1) * dimension), index * dimension);
        encoding.encoded++;
        this.#totals.encodedTokens += encoding.request.sequences[index]!.tokens.length;
        if (encoding.encoded === encoding.order.length) {
          this.#forget(encoding);
          events.push({ type: 'encoded', id: encoding.request.id, rows: encoding.rows });
        }
      }
    } catch (error) {
      if (++this.#failedRuns === maxFailedRuns) {
        throw new Error(`The model failed ${maxFailedRuns} runs in a row`, { cause: error });
      }
      const reason = `the model failed to run: ${error instanceof Error ? error.message : String(error)}`;
      for (const encoding of new Set(items.map((item) => item.encoding))) {
        this.#forget(encoding);
        events.push({ type: 'failed', id: encoding.request.id, reason });
      }
    }
  }

  #forget(encoding: Encoding): void {
    this.#encodings.delete(encoding.request.id);
    this.#scheduler.remove(encoding);
  }
}

/** Says of each request whose first sequence is among `items` that it is admitted. */
function announce(items: readonly EncodeItem[], events: EngineEvent[]): void {
  for (const { encoding, index } of items) {
    if (encoding.order[0] === index)
      events.push({ type: 'admitted', id: encoding.request.id, cachedTokens: 0 });
  }
}
