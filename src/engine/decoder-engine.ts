import { BatchBuilder, type BatchRow } from './batch.js';
import { CachedRows } from './cached-rows.js';
import type { DecoderOutput, DecoderRunner } from './decoder-runner.js';
import { type DrawnToken, drawToken, GrammarFailure } from './draw-token.js';
import type { StepEngine } from './engine-loop.js';
import type { GrammarFollower, Grammars } from './grammar.js';
import { bytesPerPosition } from './kv-cache.js';
import { PromptCuts } from './prompt-cuts.js';
import type { EngineCounters, EngineEvent, GenerateRequest } from './request.js';
import { SaidBefore } from './said-before.js';
import { SamplerScratch } from './sampler.js';
import { type Chunk, Scheduler, type Step } from './scheduler.js';
import { neededScores, type Scores, scoresOf } from './scores.js';
import { type Choice, createGeneration, type Generation, type Sequence } from './sequence.js';
import { Stopwatch } from './stopwatch.js';

export interface DecoderEngineSettings {
  readonly maxSequences: number;
  readonly contextLength: number;
  readonly kvBytes: number;
  readonly maxBatchTokens: number;
  readonly chunkTokens: number;
  readonly prefixBytes: number;
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
  /** For requests that have a grammar. */
  grammars: Grammars | undefined;
  readonly #runner: DecoderRunner;
  readonly #settings: DecoderEngineSettings;
  readonly #scheduler: Scheduler;
  readonly #cache: CachedRows;
  readonly #batches = new BatchBuilder();
  readonly #scratch: SamplerScratch;
  readonly #saidBefore = new SaidBefore();
  readonly #inbox: Command[] = [];
  readonly #totals = {
    steps: 0,
    prefillTokens: 0,
    cachedTokens: 0,
    decodeTokens: 0,
    draftTokens: 0,
    acceptedDraftTokens: 0,
    cancelled: 0,
  };
  /** Copying is all that keeps the cache: growing, moving rows, keeping and restoring the beginnings of prompts. */
  readonly #stopwatch = new Stopwatch(['step', 'run', 'sample', 'copy']);
  #failedRuns = 0;

  constructor(runner: DecoderRunner, settings: DecoderEngineSettings) {
    const { shape } = runner;
    const {
      maxSequences: slots,
      contextLength,
      kvBytes,
      maxBatchTokens,
      chunkTokens,
      prefixBytes,
    } = settings;
    this.#runner = runner;
    this.#settings = settings;
    const cuts = new PromptCuts(chunkTokens);
    const stopwatch = this.#stopwatch;
    this.#cache = new CachedRows({ shape, slots, contextLength, kvBytes, prefixBytes, cuts, stopwatch });
    this.#scheduler = new Scheduler({
      slots,
      contextLength,
      kvBytes,
      bytesPerPosition: bytesPerPosition(shape),
      maxBatchTokens,
      cuts,
      restorable: (request) => this.#cache.restorable(request),
      decodeWidth: shape.decodeWidth,
      draft: ({ choice, generation }, most) =>
        choice!.history.draft(most, this.#saidBefore.of(generation.request.scope)),
    });
    this.#scratch = new SamplerScratch(shape.vocabularySize);
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
      kvPositions: this.#scheduler.rows.reduce((sum, { cached }) => sum + cached, 0),
      prefixBytesUsed: this.#cache.prefixBytesUsed,
      ...this.#totals,
      encodedTokens: 0,
    };
  }

  /** Milliseconds since the engine started that went into steps, and into the parts of steps. */
  get spentMs() {
    return this.#stopwatch.spentMs;
  }

  /**
   * One step: schedule, run, postprocess. Returns what it brought, in order.
   * @throws Error when the runtime failed several times in a row; the engine is of no use after that.
   */
  step(): Promise<EngineEvent[]> {
    return this.#stopwatch.time('step', () => this.#step());
  }

  async #step(): Promise<EngineEvent[]> {
    const events: EngineEvent[] = [];
    await this.#takeIn(events);
    const step = this.#scheduler.next();
    if (step) {
      this.#totals.steps++;
      this.#begin(step, events);
      const output = await this.#run(step, events);
      if (output) {
        this.#advance(step, output, events);
        await this.#sample(step, output, events);
      }
      this.#cache.fit(this.#scheduler);
    }
    return events;
  }

  /** Restores what is known of the prompts that begin, and says that their requests are admitted. */
  #begin({ admitted }: Step, events: EngineEvent[]): void {
    if (admitted.length > 0) this.#cache.fit(this.#scheduler);
    for (const sequence of admitted) {
      const { generation, cached } = sequence;
      this.#cache.restore(sequence);
      this.#totals.cachedTokens += cached;
      events.push({ type: 'admitted', id: generation.request.id, cachedTokens: cached });
    }
  }

  /** Handles what came since the last step; of grammars that must be compiled one at most, since others wait for it. */
  async #takeIn(events: EngineEvent[]): Promise<void> {
    let compiled = false;
    while (!compiled) {
      const command = this.#inbox.shift();
      if (!command) break;
      switch (command.type) {
        case 'generate': {
          const { id, grammar } = command.request;
          compiled = grammar !== undefined && this.grammars?.has(grammar) === false;
          const reason = await this.#enqueue(command.request);
          if (reason !== undefined) events.push({ type: 'failed', id, reason });
          break;
        }
        case 'cancel':
          this.#cancel(command.id, command.choice, events);
          break;
        default:
          command satisfies never;
      }
    }
    this.#cache.fit(this.#scheduler);
  }

  /** Returns the reason when the request cannot run. */
  async #enqueue(request: GenerateRequest): Promise<string | undefined> {
    const { vocabularySize } = this.#runner.shape;
    const stranger = request.prompt.find((token) => token < 0 || token >= vocabularySize);
    if (stranger !== undefined) return `token ${stranger} is not in a vocabulary of ${vocabularySize}`;
    const { contextLength } = this.#settings;
    const followers: GrammarFollower[] = [];
    let reason: string | undefined;
    try {
      if (request.grammar) {
        if (!this.grammars) return 'there are no grammars without a vocabulary';
        for (let index = 0; index < request.choices; index++) {
          followers.push(await this.grammars.follow(request.grammar));
        }
      }
      const scratch = this.#scratch;
      reason = this.#scheduler.enqueue(createGeneration(request, { contextLength, scratch, followers }));
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
    if (reason !== undefined) for (const follower of followers) follower.dispose();
    return reason;
  }

  #cancel(id: string, index: number | undefined, events: EngineEvent[]): void {
    const generation = this.#scheduler.find(id);
    if (index === undefined) {
      if (generation) {
        this.#totals.cancelled++;
        this.#remove(generation);
      }
      events.push({ type: 'cancelled', id });
      return;
    }
    const choice = generation?.choices.find((other) => other.index === index);
    if (generation && choice) this.#finish(generation, choice);
  }

  async #run({ chunks }: Step, events: EngineEvent[]): Promise<DecoderOutput | undefined> {
    const { vocabularySize } = this.#runner.shape;
    const inputs = this.#batches.build(
      chunks.map((chunk) => ({ ...batchRow(chunk), ...neededScores(chunk, vocabularySize) })),
    );
    this.#cache.fit(this.#scheduler, inputs.longest[0]);
    const cache = this.#cache.view(chunks[0]!.sequence.row, chunks.length);
    try {
      const output = await this.#stopwatch.time('run', () => this.#runner.run({ ...inputs, cache }));
      this.#failedRuns = 0;
      return output;
    } catch (error) {
      if (++this.#failedRuns === maxFailedRuns) {
        throw new Error(`The model failed ${maxFailedRuns} runs in a row`, { cause: error });
      }
      const reason = `the model failed to run: ${error instanceof Error ? error.message : String(error)}`;
      for (const { sequence, tokens } of chunks) {
        if (tokens > 0) this.#fail(sequence.generation, reason, events);
      }
      return undefined;
    }
  }

  /**
   * Counts the new positions in, those of drafts not yet. A row that is not finite would poison its successors: it fails.
   */
  #advance({ kind, chunks }: Step, output: DecoderOutput, events: EngineEvent[]): void {
    for (const { sequence, tokens } of chunks) this.#cache.advance(sequence, tokens);
    for (const [row, { sequence, tokens }] of chunks.entries()) {
      if (tokens > 0) this.#mustBeFinite(sequence, output, row, events);
    }
    if (kind === 'decode') return;
    for (const { sequence, tokens } of chunks.filter((chunk) => chunk.sequence.row !== -1)) {
      this.#cache.keep(sequence, tokens);
      this.#totals.prefillTokens += tokens;
    }
  }

  #scores(output: DecoderOutput, place: number): Scores {
    return scoresOf(output, place, this.#runner.shape.vocabularySize);
  }

  #mustBeFinite(
    { generation }: Sequence,
    { top }: DecoderOutput,
    place: number,
    events: EngineEvent[],
  ): void {
    if (Number.isFinite(top.logits[place * top.count])) return;
    this.#fail(generation, 'the model gave a result that is not a number', events);
  }

  /** Draws from the logits of every row whose prompt has been read. */
  async #sample({ chunks }: Step, output: DecoderOutput, events: EngineEvent[]): Promise<void> {
    for (const [row, { sequence, drafts }] of chunks.entries()) {
      if (sequence.row === -1) continue;
      const { generation } = sequence;
      if (sequence.cached < generation.request.prompt.length) continue;
      const scores = this.#scores(output, row);
      const branching = sequence.choice === undefined;
      for (const choice of sequence.choice ? [sequence.choice] : [...generation.choices]) {
        if (sequence.row === -1) break;
        await this.#draw(generation, choice, { scores, events });
      }
      if (drafts) await this.#drawDrafts(sequence, drafts, output, events);
      if (branching && sequence.row !== -1 && generation.choices.length > 0) {
        const copies = this.#scheduler.branch(sequence);
        this.#cache.fit(this.#scheduler);
        this.#cache.copy(copies);
      }
    }
  }

  /** Goes on drawing behind the drafts of a sequence that is alone, as long as they are what was drawn. */
  async #drawDrafts(
    sequence: Sequence,
    drafts: Int32Array,
    output: DecoderOutput,
    events: EngineEvent[],
  ): Promise<void> {
    this.#totals.draftTokens += drafts.length;
    for (const [index, draft] of drafts.entries()) {
      const { choice, generation } = sequence;
      if (sequence.row === -1 || choice?.token !== draft) break;
      this.#totals.acceptedDraftTokens++;
      this.#cache.advance(sequence, 1);
      this.#mustBeFinite(sequence, output, 1 + index, events);
      if (sequence.row === -1) break;
      await this.#draw(generation, choice, { scores: this.#scores(output, 1 + index), events });
    }
  }

  async #draw(
    generation: Generation,
    choice: Choice,
    { scores, events }: { readonly scores: Scores; readonly events: EngineEvent[] },
  ): Promise<void> {
    const { id, endTokens, topLogprobs } = generation.request;
    let drawn: DrawnToken;
    try {
      drawn = await drawToken(choice, scores, { topLogprobs, stopwatch: this.#stopwatch });
    } catch (error) {
      if (!(error instanceof GrammarFailure)) throw error;
      this.#fail(generation, error.message, events);
      return;
    }
    this.#totals.decodeTokens++;
    const finish = endTokens.includes(drawn.token)
      ? 'end'
      : choice.drawn >= generation.maxDrawn
        ? 'length'
        : undefined;
    events.push({
      type: 'token',
      id,
      choice: choice.index,
      ...drawn,
      ...(finish !== undefined && { finish }),
    });
    if (finish !== undefined) this.#finish(generation, choice);
  }

  #fail(generation: Generation, reason: string, events: EngineEvent[]): void {
    if (this.#scheduler.find(generation.request.id) !== generation) return;
    this.#remove(generation);
    events.push({ type: 'failed', id: generation.request.id, reason });
  }

  #finish(generation: Generation, choice: Choice): void {
    this.#end(generation, choice);
    this.#cache.copy(this.#scheduler.finish(generation, choice));
  }

  #end({ request }: Generation, { grammar, history }: Choice): void {
    grammar?.dispose();
    this.#saidBefore.keep(request.scope, history.tokens, request.prompt.length);
  }

  #remove(generation: Generation): void {
    for (const choice of generation.choices) this.#end(generation, choice);
    this.#cache.copy(this.#scheduler.remove(generation));
  }
}

function batchRow({ sequence, tokens, drafts = new Int32Array(0) }: Chunk): BatchRow {
  const { cached, choice, generation } = sequence;
  if (tokens === 0) return { cached, tokens: [] };
  if (choice) return { cached, tokens: [choice.token, ...drafts], wanted: 1 + drafts.length };
  return { cached, tokens: generation.request.prompt.subarray(cached, cached + tokens) };
}
