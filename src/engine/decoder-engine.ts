import { BatchBuilder, type BatchRow } from './batch.js';
import type { DecoderOutput, DecoderRunner } from './decoder-runner.js';
import type { StepEngine } from './engine-loop.js';
import { bytesPerPosition, KvCache } from './kv-cache.js';
import { tokenLogprobs } from './logprobs.js';
import type { EngineCounters, EngineEvent, GenerateRequest } from './request.js';
import { Sampler, SamplerScratch } from './sampler.js';
import { type RowCopy, Scheduler, type Step } from './scheduler.js';
import type { Choice, Generation, Sequence } from './sequence.js';

export interface DecoderEngineSettings {
  readonly maxSequences: number;
  readonly contextLength: number;
  readonly kvBytes: number;
  readonly maxBatchTokens: number;
}

/** Milliseconds since the engine started, by what they went into. */
export interface DecoderTimings {
  readonly stepMs: number;
  readonly runMs: number;
  readonly sampleMs: number;
  /** Keeping the cache: appending, growing, moving rows. */
  readonly copyMs: number;
}

type Command =
  | { readonly type: 'generate'; readonly request: GenerateRequest }
  | { readonly type: 'cancel'; readonly id: string; readonly choice: number | undefined };

/** After this many failed runs in a row the runtime is taken to be beyond recovery. */
const maxFailedRuns = 3;

/**
 * Continuous batching over a decoder: each step is one run of the graph, and requests join and leave between steps.
 * Requests and cancellations are taken in at the start of the next step.
 */
export class DecoderEngine implements StepEngine {
  readonly #runner: DecoderRunner;
  readonly #settings: DecoderEngineSettings;
  readonly #scheduler: Scheduler;
  readonly #cache: KvCache;
  readonly #batches: BatchBuilder;
  readonly #scratch: SamplerScratch;
  readonly #noPast: readonly Float32Array[];
  readonly #inbox: Command[] = [];
  readonly #totals = { steps: 0, prefillTokens: 0, decodeTokens: 0, cancelled: 0 };
  readonly #timings = { stepMs: 0, runMs: 0, sampleMs: 0, copyMs: 0 };
  #failedRuns = 0;

  constructor(runner: DecoderRunner, settings: DecoderEngineSettings) {
    const { shape } = runner;
    const { maxSequences: slots, contextLength, kvBytes, maxBatchTokens } = settings;
    this.#runner = runner;
    this.#settings = settings;
    this.#scheduler = new Scheduler({
      slots,
      contextLength,
      kvBytes,
      bytesPerPosition: bytesPerPosition(shape),
      maxBatchTokens,
    });
    this.#cache = new KvCache({ shape, slots, contextLength, maxBytes: kvBytes });
    this.#batches = new BatchBuilder(shape.heads / shape.kvHeads);
    this.#scratch = new SamplerScratch(shape.vocabularySize);
    this.#noPast = new Array(shape.layers).fill(new Float32Array(0));
  }

  get busy(): boolean {
    return this.#inbox.length > 0 || this.#scheduler.busy;
  }

  generate(request: GenerateRequest): void {
    this.#inbox.push({ type: 'generate', request });
  }

  cancel(id: string, choice?: number): void {
    this.#inbox.push({ type: 'cancel', id, choice });
  }

  counters(): EngineCounters {
    return {
      running: this.#scheduler.running,
      waiting: this.#scheduler.waiting,
      slots: this.#settings.maxSequences,
      kvBytesUsed: this.#cache.bytesUsed,
      kvBytesBudget: this.#settings.kvBytes,
      ...this.#totals,
      encodedTokens: 0,
    };
  }

  timings(): DecoderTimings {
    return { ...this.#timings };
  }

  /**
   * One step: schedule, run, postprocess. Returns what it brought, in order.
   * @throws Error when the runtime failed several times in a row; the engine is of no use after that.
   */
  async step(): Promise<EngineEvent[]> {
    const started = performance.now();
    const events: EngineEvent[] = [];
    this.#takeIn(events);
    const step = this.#scheduler.next();
    if (step) {
      this.#totals.steps++;
      const sequences = sequencesOf(step);
      if (step.kind === 'prefill') announce(sequences, events);
      const output = await this.#run(step, events);
      if (output) {
        this.#append(step, output, events);
        this.#sample(sequences, output, events);
      }
      this.#fit();
    }
    this.#timings.stepMs += performance.now() - started;
    return events;
  }

  #takeIn(events: EngineEvent[]): void {
    for (const command of this.#inbox.splice(0)) {
      switch (command.type) {
        case 'generate': {
          const reason = this.#enqueue(command.request);
          if (reason !== undefined) events.push({ type: 'failed', id: command.request.id, reason });
          break;
        }
        case 'cancel':
          this.#cancel(command.id, command.choice, events);
          break;
        default:
          command satisfies never;
      }
    }
    this.#fit();
  }

  #enqueue(request: GenerateRequest): string | undefined {
    const { vocabularySize } = this.#runner.shape;
    const stranger = request.prompt.find((token) => token < 0 || token >= vocabularySize);
    if (stranger !== undefined) return `token ${stranger} is not in a vocabulary of ${vocabularySize}`;
    const room = this.#settings.contextLength - request.prompt.length;
    const maxDrawn = Math.min(request.maxTokens, room);
    return this.#scheduler.enqueue({
      request,
      maxDrawn,
      limit: request.prompt.length + maxDrawn - 1,
      choices: Array.from({ length: request.choices }, (_, index) => ({
        index,
        sampler: new Sampler(request.sampling, index, this.#scratch),
        token: 0,
        drawn: 0,
      })),
    });
  }

  #cancel(id: string, index: number | undefined, events: EngineEvent[]): void {
    const generation = this.#scheduler.find(id);
    if (index === undefined) {
      if (generation) {
        this.#totals.cancelled++;
        this.#copyRows(this.#scheduler.remove(generation));
      }
      events.push({ type: 'cancelled', id });
      return;
    }
    const choice = generation?.choices.find((other) => other.index === index);
    if (generation && choice) this.#copyRows(this.#scheduler.finish(generation, choice));
  }

  async #run(step: Step, events: EngineEvent[]): Promise<DecoderOutput | undefined> {
    const rows = batchRows(step);
    const begun = rows.some(({ cached }) => cached > 0);
    const inputs = this.#batches.build(rows, begun ? this.#cache.capacity : 0);
    const past = begun
      ? this.#cache.view(sequencesOf(step)[0]!.row, rows.length)
      : { keys: this.#noPast, values: this.#noPast };
    const started = performance.now();
    try {
      const output = await this.#runner.run({ ...inputs, ...past });
      this.#failedRuns = 0;
      return output;
    } catch (error) {
      if (++this.#failedRuns === maxFailedRuns) {
        throw new Error(`The model failed ${maxFailedRuns} runs in a row`, { cause: error });
      }
      const reason = `the model failed to run: ${error instanceof Error ? error.message : String(error)}`;
      for (const { generation } of sequencesOf(step)) this.#fail(generation, reason, events);
      return undefined;
    } finally {
      this.#timings.runMs += performance.now() - started;
    }
  }

  /** Puts the new keys and values into the cache. A row that is not finite would poison its successors: it fails. */
  #append(step: Step, { logits, ...output }: DecoderOutput, events: EngineEvent[]): void {
    const { vocabularySize } = this.#runner.shape;
    const parts =
      step.kind === 'prefill'
        ? step.chunks
        : step.sequences.map((sequence) => ({ sequence, tokens: sequence.choice ? 1 : 0 }));
    const width = Math.max(...parts.map(({ tokens }) => tokens));
    this.#fit(Math.max(...parts.map(({ sequence, tokens }) => sequence.cached + tokens)));
    for (const [outputRow, { sequence, tokens }] of parts.entries()) {
      if (tokens > 0 && !Number.isFinite(logits[outputRow * vocabularySize])) {
        this.#fail(sequence.generation, 'the model gave a result that is not a number', events);
      }
    }
    const started = performance.now();
    const sound = parts
      .map(({ sequence, tokens }, outputRow) => ({ sequence, tokens, outputRow, row: sequence.row }))
      .filter(({ tokens, row }) => tokens > 0 && row !== -1);
    this.#cache.append(output, width, sound);
    for (const { sequence, tokens } of sound) sequence.cached += tokens;
    if (step.kind === 'prefill') {
      this.#totals.prefillTokens += sound.reduce((sum, { tokens }) => sum + tokens, 0);
    }
    this.#timings.copyMs += performance.now() - started;
  }

  #sample(sequences: readonly Sequence[], { logits }: DecoderOutput, events: EngineEvent[]): void {
    const { vocabularySize } = this.#runner.shape;
    for (const [row, sequence] of sequences.entries()) {
      if (sequence.row === -1) continue;
      const { generation } = sequence;
      if (sequence.cached < generation.request.prompt.length) continue;
      const own = logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
      const branching = sequence.choice === undefined;
      for (const choice of sequence.choice ? [sequence.choice] : [...generation.choices]) {
        this.#draw(generation, choice, own, events);
      }
      if (branching && generation.choices.length > 0) {
        const copies = this.#scheduler.branch(sequence);
        this.#fit();
        this.#copyRows(copies);
      }
    }
  }

  #draw(generation: Generation, choice: Choice, logits: Float32Array, events: EngineEvent[]): void {
    const { id, endTokens, topLogprobs } = generation.request;
    const started = performance.now();
    const token = choice.sampler.sample(logits);
    const logprobs = topLogprobs === undefined ? undefined : tokenLogprobs(logits, token, topLogprobs);
    this.#timings.sampleMs += performance.now() - started;
    choice.token = token;
    choice.drawn++;
    this.#totals.decodeTokens++;
    const finish = endTokens.includes(token)
      ? 'end'
      : choice.drawn >= generation.maxDrawn
        ? 'length'
        : undefined;
    events.push({
      type: 'token',
      id,
      choice: choice.index,
      token,
      ...logprobs,
      ...(finish !== undefined && { finish }),
    });
    if (finish !== undefined) this.#copyRows(this.#scheduler.finish(generation, choice));
  }

  #fail(generation: Generation, reason: string, events: EngineEvent[]): void {
    if (this.#scheduler.find(generation.request.id) !== generation) return;
    this.#copyRows(this.#scheduler.remove(generation));
    events.push({ type: 'failed', id: generation.request.id, reason });
  }

  #copyRows(copies: readonly RowCopy[]): void {
    const started = performance.now();
    for (const { from, to } of copies) this.#cache.copyRow(from, to);
    this.#timings.copyMs += performance.now() - started;
  }

  /** Brings the cache's rows in line with the scheduler's, with room for at least `positions` in each. */
  #fit(positions = 0): void {
    const started = performance.now();
    const { rows, limit } = this.#scheduler;
    const longest = rows.reduce((most, { cached }) => Math.max(most, cached), positions);
    this.#cache.fit({ rows: rows.length, longest, limit });
    this.#timings.copyMs += performance.now() - started;
  }
}

function sequencesOf(step: Step): readonly Sequence[] {
  return step.kind === 'prefill' ? step.chunks.map(({ sequence }) => sequence) : step.sequences;
}

function batchRows(step: Step): BatchRow[] {
  if (step.kind === 'decode') {
    return step.sequences.map(({ cached, choice }) =>
      choice ? { cached, tokens: [choice.token] } : { cached: 0, tokens: [] },
    );
  }
  return step.chunks.map(({ sequence, tokens }) => ({
    cached: sequence.cached,
    tokens: sequence.generation.request.prompt.subarray(sequence.cached, sequence.cached + tokens),
  }));
}

/** Says of each request whose prompt is now begun that it is admitted. */
function announce(sequences: readonly Sequence[], events: EngineEvent[]): void {
  for (const { cached, generation } of sequences) {
    if (cached === 0) events.push({ type: 'admitted', id: generation.request.id, cachedTokens: 0 });
  }
}
