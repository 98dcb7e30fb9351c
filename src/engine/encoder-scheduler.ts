import type { EncodeRequest } from './request.js';

/** An encode request inside the engine. */
export interface Encoding {
  readonly request: EncodeRequest;
  /** [sequences, dimension]. */
  readonly rows: Float32Array;
  /** Indices of its sequences, longest first. */
  readonly order: readonly number[];
  /** How many of `order` have been scheduled, and how many rows are in. */
  scheduled: number;
  encoded: number;
}

/** One sequence of one request. */
export interface EncodeItem {
  readonly encoding: Encoding;
  readonly index: number;
}

/** A run's padding may waste this share of its width on a row, and this many tokens besides. */
const paddingShare = 0.25;
const paddingTokens = 8;

/**
 * Decides which sequences run together: those of like length, whoever asked for them. Requests lead a batch in turn,
 * interactive ones first, so that a small request waits for at most one batch of each other's.
 */
export class EncoderScheduler {
  readonly #maxBatchTokens: number;
  /** Requests with sequences left to schedule, in the order of their turns. */
  readonly #turns: Record<'interactive' | 'batch', Encoding[]> = { interactive: [], batch: [] };

  constructor(maxBatchTokens: number) {
    this.#maxBatchTokens = maxBatchTokens;
  }

  enqueue(encoding: Encoding): void {
    this.#turns[encoding.request.priority].push(encoding);
  }

  remove(encoding: Encoding): void {
    const { priority } = encoding.request;
    this.#turns[priority] = this.#turns[priority].filter((other) => other !== encoding);
  }

  /** The sequences of the next run, the longest first; undefined when none is left. */
  next(): EncodeItem[] | undefined {
    const turn = this.#turns.interactive.length > 0 ? this.#turns.interactive : this.#turns.batch;
    const lead = turn.shift();
    if (!lead) return undefined;
    const width = nextLength(lead);
    const rows = Math.max(1, Math.floor(this.#maxBatchTokens / width));
    const items: EncodeItem[] = [];
    for (const encoding of [lead, ...this.#turns.interactive, ...this.#turns.batch]) {
      while (items.length < rows && suits(nextLength(encoding), width)) {
        items.push({ encoding, index: encoding.order[encoding.scheduled++]! });
      }
    }
    if (hasMore(lead)) turn.push(lead);
    this.#turns.interactive = this.#turns.interactive.filter(hasMore);
    this.#turns.batch = this.#turns.batch.filter(hasMore);
    return items;
  }
}

function hasMore({ scheduled, order }: Encoding): boolean {
  return scheduled < order.length;
}

/** Length of the longest sequence that is left; 0 when none is. */
function nextLength({ request, order, scheduled }: Encoding): number {
  const index = order[scheduled];
  return index === undefined ? 0 : request.sequences[index]!.tokens.length;
}

function suits(length: number, width: number): boolean {
  return length > 0 && length <= width && width - length <= paddingTokens + paddingShare * width;
}
