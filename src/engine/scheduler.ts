import type { PromptCuts } from './prompt-cuts.js';
import type { GenerateRequest } from './request.js';
import type { Choice, Generation, Sequence } from './sequence.js';

export interface SchedulerSettings {
  /** Rows of the cache. */
  readonly slots: number;
  readonly contextLength: number;
  readonly kvBytes: number;
  /** Bytes of one position of one row. */
  readonly bytesPerPosition: number;
  /** Tokens of one prefill step at most, padding included. */
  readonly maxBatchTokens: number;
  readonly cuts: PromptCuts;
  /** Tokens at the beginning of a prompt that need not be read again: whole chunks, and not the last token. */
  readonly restorable?: (request: GenerateRequest) => number;
  /** New tokens of a row in a decode step, drafts included: 1 when left out. */
  readonly decodeWidth?: number;
  /** At most `most` tokens that may follow the one that a sequence has drawn last. */
  readonly draft?: (sequence: Sequence, most: number) => Int32Array;
}

/**
 * What the engine runs next, over neighbouring rows.
 *
 * - prefill: the next chunk of a prompt, or of several that are about as long.
 * - decode: one token for every row that has a choice, over rows 0..n-1; rows still in prefill stand idle. A row that is
 *   alone runs drafts besides: a step with sixteen tokens takes twice as long as one with one.
 */
export interface Step {
  readonly kind: 'prefill' | 'decode';
  readonly chunks: readonly Chunk[];
  /** Those of the chunks' sequences that begin, with as many positions cached as can be restored. */
  readonly admitted: readonly Sequence[];
}

/** How many new tokens one sequence runs; none when its row stands idle. */
export interface Chunk {
  readonly sequence: Sequence;
  readonly tokens: number;
  /** Tokens that may follow, and are run as if they did. */
  readonly drafts?: Int32Array;
}

/** The cache must copy row `from` to row `to`, in the order given. */
export interface RowCopy {
  readonly from: number;
  readonly to: number;
}

/**
 * A run costs, whatever its size, about as much as this many tokens of prefill (a 30-layer model: 8 ms, and 0.4 ms a
 * token): padding a prompt by less is cheaper than a run of its own.
 */
const paddingWorth = 20;

/**
 * Decides what runs next; touches no tensor. Interactive requests go before batch requests, and within either the
 * oldest is first: when it does not fit, nobody younger passes it, so a large request cannot starve.
 */
export class Scheduler {
  readonly #settings: SchedulerSettings;
  readonly #waiting: Record<'interactive' | 'batch', Generation[]> = { interactive: [], batch: [] };
  readonly #generations = new Map<string, Generation>();
  readonly #rows: Sequence[] = [];
  #previous: Step['kind'] = 'decode';

  constructor(settings: SchedulerSettings) {
    this.#settings = settings;
  }

  /** The sequences in the order of their rows. */
  get rows(): readonly Sequence[] {
    return this.#rows;
  }

  get busy(): boolean {
    return this.#generations.size > 0;
  }

  /** Requests that have not begun. */
  get waiting(): number {
    return this.#waiting.interactive.length + this.#waiting.batch.length;
  }

  /** Slots held: by rows, and for the choices of requests whose prompt is still read. */
  get running(): number {
    let held = 0;
    for (const { choice, generation } of this.#rows) held += choice ? 1 : generation.choices.length;
    return held;
  }

  /** Positions that the longest row may come to hold. */
  get limit(): number {
    let limit = 0;
    for (const { generation } of this.#rows) limit = Math.max(limit, generation.limit);
    return limit;
  }

  /** Puts a request behind those of its priority; returns the reason when it could never run. */
  enqueue(generation: Generation): string | undefined {
    const { request, limit } = generation;
    const { slots, kvBytes, bytesPerPosition, contextLength } = this.#settings;
    if (this.#generations.has(request.id)) return `a request with the id ${request.id} is already running`;
    if (request.prompt.length === 0) return 'the prompt is empty';
    if (request.prompt.length >= contextLength) {
      return `the prompt's ${request.prompt.length} tokens leave no room in a context of ${contextLength}`;
    }
    if (request.choices > slots) return `${request.choices} choices do not fit ${slots} slots`;
    const bytes = request.choices * limit * bytesPerPosition;
    if (bytes > kvBytes) {
      return `${request.choices} x ${limit} positions take ${bytes} bytes of a KV cache of ${kvBytes}`;
    }
    this.#generations.set(request.id, generation);
    this.#waiting[request.priority].push(generation);
    return undefined;
  }

  find(id: string): Generation | undefined {
    return this.#generations.get(id);
  }

  /**
   * The next step, or undefined when there is nothing to run. Prefill and decode alternate while there is work for
   * both, so that a decoding sequence never waits for more than one prefill step.
   */
  next(): Step | undefined {
    const decode = this.#nextDecode();
    const step = decode && this.#previous === 'prefill' ? decode : (this.#nextPrefill() ?? decode);
    if (step) this.#previous = step.kind;
    return step;
  }

  /** Gives each living choice of a prompt that has been read its own sequence; the first keeps the row. */
  branch(prefilled: Sequence): RowCopy[] {
    const [first, ...others] = prefilled.generation.choices;
    if (!first) throw new Error('Scheduler: branch without a living choice. This is a bug.');
    prefilled.choice = first;
    return others.map((choice) => {
      const row = this.#rows.length;
      this.#rows.push({ generation: prefilled.generation, row, cached: prefilled.cached, choice });
      return { from: prefilled.row, to: row };
    });
  }

  /** Ends one choice. Frees its row, or the request's when no other choice lives. */
  finish(generation: Generation, choice: Choice): RowCopy[] {
    generation.choices = generation.choices.filter((other) => other !== choice);
    if (generation.choices.length === 0) return this.remove(generation);
    const sequence = this.#rows.find((row) => row.choice === choice);
    return sequence ? this.#free(sequence) : [];
  }

  /** Ends a request in whatever state it is. */
  remove(generation: Generation): RowCopy[] {
    const { id, priority } = generation.request;
    this.#generations.delete(id);
    this.#waiting[priority] = this.#waiting[priority].filter((other) => other !== generation);
    return this.#rows.filter((row) => row.generation === generation).flatMap((row) => this.#free(row));
  }

  /** The last row moves into the gap, so that the rows in use stay the first ones. */
  #free(sequence: Sequence): RowCopy[] {
    const last = this.#rows.pop()!;
    const to = sequence.row;
    sequence.row = -1;
    if (last === sequence) return [];
    const from = last.row;
    last.row = to;
    this.#rows[to] = last;
    return [{ from, to }];
  }

  #nextDecode(): Step | undefined {
    const count = this.#rows.findLastIndex(({ choice }) => choice !== undefined) + 1;
    if (count === 0) return undefined;
    const chunks: Chunk[] = this.#rows
      .slice(0, count)
      .map((sequence) => ({ sequence, tokens: sequence.choice ? 1 : 0 }));
    if (count === 1) chunks[0] = this.#withDrafts(chunks[0]!);
    return { kind: 'decode', chunks, admitted: [] };
  }

  /** Drafts never are so many that the choice could not draw all of them, and one more. */
  #withDrafts(chunk: Chunk): Chunk {
    const { generation, choice } = chunk.sequence;
    const { decodeWidth = 1, draft } = this.#settings;
    const most = Math.min(decodeWidth, generation.maxDrawn - choice!.drawn) - 1;
    return draft && most > 0 ? { ...chunk, drafts: draft(chunk.sequence, most) } : chunk;
  }

  #nextPrefill(): Step | undefined {
    let blocked = false;
    for (const priority of ['interactive', 'batch'] as const) {
      const begun = this.#rows.find(
        ({ choice, generation }) => choice === undefined && generation.request.priority === priority,
      );
      if (begun) return this.#prefill(begun, []);
      const [oldest] = this.#waiting[priority];
      if (oldest && !blocked) {
        if (this.#fits(oldest)) {
          const first = this.#admit(oldest, this.#restorable(oldest));
          return this.#prefill(first, [first]);
        }
        blocked = true;
      }
    }
    return undefined;
  }

  /**
   * The next chunk of `first`, and of those behind it that can share its run: rows begun, then requests that wait.
   * Prompts of which something is cached are read on their own, since the graph takes no others beside them.
   */
  #prefill(first: Sequence, admitted: Sequence[]): Step {
    const chunks: Chunk[] = [{ sequence: first, tokens: this.#chunkOf(first.generation, first.cached) }];
    let width = chunks[0]!.tokens;
    let total = width;
    const shares = (tokens: number): boolean => {
      const padded = Math.max(width, tokens) * (chunks.length + 1);
      const isCheap = padded - total - tokens <= paddingWorth * chunks.length;
      return padded <= this.#settings.maxBatchTokens && isCheap;
    };
    if (first.cached > 0) return { kind: 'prefill', chunks, admitted };
    const share = (sequence: Sequence, tokens: number): void => {
      chunks.push({ sequence, tokens });
      width = Math.max(width, tokens);
      total += tokens;
    };
    for (;;) {
      const begun = this.#rows[first.row + chunks.length];
      if (begun) {
        const tokens = this.#chunkOf(begun.generation, begun.cached);
        if (begun.choice !== undefined || begun.cached > 0 || !shares(tokens)) break;
        share(begun, tokens);
        continue;
      }
      const waiting = this.#waiting.interactive[0] ?? this.#waiting.batch[0];
      if (!waiting || !this.#fits(waiting)) break;
      const restorable = this.#restorable(waiting);
      const tokens = this.#chunkOf(waiting, restorable);
      if (restorable > 0 || !shares(tokens)) break;
      const sequence = this.#admit(waiting, restorable);
      admitted.push(sequence);
      share(sequence, tokens);
    }
    return { kind: 'prefill', chunks, admitted };
  }

  /** Tokens up to the next cut of a prompt of which `cached` are read. */
  #chunkOf({ request }: Generation, cached: number): number {
    return this.#settings.cuts.next(request.prompt.length, cached) - cached;
  }

  #restorable({ request }: Generation): number {
    return this.#settings.restorable?.(request) ?? 0;
  }

  /** Gives the oldest of those that wait a row. */
  #admit(generation: Generation, cached: number): Sequence {
    this.#waiting[generation.request.priority].shift();
    const sequence: Sequence = { generation, row: this.#rows.length, cached, choice: undefined };
    this.#rows.push(sequence);
    return sequence;
  }

  /**
   * Whether slots are free for every choice, and the cache could hold all rows at the length that the longest of
   * them may reach: its rows share one capacity.
   */
  #fits(generation: Generation): boolean {
    const { slots, kvBytes, bytesPerPosition } = this.#settings;
    const rows = this.running + generation.choices.length;
    return rows <= slots && rows * Math.max(this.limit, generation.limit) * bytesPerPosition <= kvBytes;
  }
}
