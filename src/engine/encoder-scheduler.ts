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
 * Decides which sequences run together: those of like length, whoever asked for them. Requests lead in turn,
 * interactive ones first, and a turn is worth one full batch: a request that has come while a batch runs leads the
 * next one, and goes on leading while the rest of it fits in what its turn has left. So a small request waits for the
 * batch that is running and for nothing else of a large one, also when its sequences are too unlike for one run.
 */
export class EncoderScheduler {
  readonly #maxBatchTokens: number;
  /** Requests with sequences left to schedule, in the order of their turns. */
  readonly #waiting: Record<'interactive' | 'batch', Encoding[]> = { interactive: [], batch: [] };
  /** Whose turn it is, and the tokens it has left. */
  #turn: { readonly encoding: Encoding; tokensLeft: number } | undefined;

  constructor(maxBatchTokens: number) {
    this.#maxBatchTokens = maxBatchTokens;
  }

  enqueue(encoding: Encoding): void {
    this.#waiting[encoding.request.priority].push(encoding);
  }

  remove(encoding: Encoding): void {
    const { priority } = encoding.request;
    this.#waiting[priority] = this.#waiting[priority].filter((other) => other !== encoding);
    if (this.#turn?.encoding === encoding) this.#turn = undefined;
  }

  /** The sequences of the next run, the longest first; undefined when none is left. */
  next(): EncodeItem[] | undefined {
    this.#turn = this.#nextTurn();
    if (!this.#turn) return undefined;
    const lead = this.#turn.encoding;
    const width = nextLength(lead);
    const rows = Math.max(1, Math.floor(this.#maxBatchTokens / width));
    const items: EncodeItem[] = [];
    for (const encoding of [lead, ...this.#waiting.interactive, ...this.#waiting.batch]) {
      while (items.length < rows && suits(nextLength(encoding), width)) {
        items.push({ encoding, index: encoding.order[encoding.scheduled++]! });
      }
    }
    this.#turn.tokensLeft -= items.length * width;
    this.#waiting.interactive = this.#waiting.interactive.filter(hasMore);
    this.#waiting.batch = this.#waiting.batch.filter(hasMore);
    return items;
  }

  #nextTurn(): { encoding: Encoding; tokensLeft: number } | undefined {
    const turn = this.#turn;
    if (turn && hasMore(turn.encoding)) {
      const isOvertaken = turn.encoding.request.priority === 'batch' && this.#waiting.interactive.length > 0;
      if (!isOvertaken && restFits(turn.encoding, turn.tokensLeft)) return turn;
      // Only now, so that whoever came during its turn is ahead of it.
      this.enqueue(turn.encoding);
    }
    const encoding = this.#waiting.interactive.shift() ?? this.#waiting.batch.shift();
    return encoding && { encoding, tokensLeft: this.#maxBatchTokens };
  }
}

function hasMore({ scheduled, order }: Encoding): boolean {
  return scheduled < order.length;
}

/** Whether the sequences that are left have no more than `tokens` tokens in all. */
function restFits({ request, order, scheduled }: Encoding, tokens: number): boolean {
  let left = tokens;
  for (let at = scheduled; at < order.length && left >= 0; at++) {
    left -= request.sequences[order[at]!]!.tokens.length;
  }
  return left >= 0;
}

/** Length of the longest sequence that is left; 0 when none is. */
function nextLength({ request, order, scheduled }: Encoding): number {
  const index = order[scheduled];
  return index === undefined ? 0 : request.sequences[index]!.tokens.length;
}

function suits(length: number, width: number): boolean {
  return length > 0 && length <= width && width - length <= paddingTokens + paddingShare * width;
}
