import { EventEmitter, once } from 'node:events';
import type { Engine } from '../../../src/engine/engine.js';
import type { Vocabulary } from '../../../src/engine/grammar.js';
import type {
  EncodeRequest,
  EngineCounters,
  EngineEvent,
  GenerateRequest,
  TokenEvent,
} from '../../../src/engine/request.js';
import type { Manifest } from '../../../src/models/manifest.js';
import { deferred } from '../../support/deferred.js';

type Said = Omit<TokenEvent, 'type' | 'id' | 'choice'> & { choice?: number };

/** An engine whose every step is the test's. Requests are handed to the test in the order they came. */
export class FakeEngine implements Engine {
  readonly vocabularies: Vocabulary[] = [];
  /** What it answers to whoever asks for its counters; until then it is in a long step. */
  readonly counted = deferred<EngineCounters>();
  readonly cancelled: { id: string; choice: number | undefined }[] = [];
  readonly #requests = new EventEmitter();
  readonly #generating: GenerateRequest[] = [];
  readonly #encoding: EncodeRequest[] = [];
  #hear: (events: readonly EngineEvent[]) => void = () => {};
  #fail: (error: Error) => void = () => {};

  constructor(readonly manifest: Manifest) {}

  useVocabulary(vocabulary: Vocabulary): void {
    this.vocabularies.push(vocabulary);
  }

  generate(request: GenerateRequest): void {
    this.#generating.push(request);
    this.#requests.emit('generate');
  }

  encode(request: EncodeRequest): void {
    this.#encoding.push(request);
    this.#requests.emit('encode');
  }

  cancel(id: string, choice?: number): void {
    this.cancelled.push({ id, choice });
    if (choice === undefined) queueMicrotask(() => this.step([{ type: 'cancelled', id }]));
    this.#requests.emit('cancel');
  }

  counters(): Promise<EngineCounters> {
    return this.counted.promise;
  }

  onEvents(listener: (events: readonly EngineEvent[]) => void): void {
    this.#hear = listener;
  }

  onFailure(listener: (error: Error) => void): void {
    this.#fail = listener;
  }

  async close(): Promise<void> {}

  /** The next request to generate; waits for it. */
  async nextGenerate(): Promise<GenerateRequest> {
    while (this.#generating.length === 0) await once(this.#requests, 'generate');
    return this.#generating.shift()!;
  }

  async nextEncode(): Promise<EncodeRequest> {
    while (this.#encoding.length === 0) await once(this.#requests, 'encode');
    return this.#encoding.shift()!;
  }

  /** Resolves once something was cancelled. */
  async nextCancel(): Promise<void> {
    if (this.cancelled.length === 0) await once(this.#requests, 'cancel');
  }

  /** Requests that came and were not asked for by the test. */
  get unanswered(): number {
    return this.#generating.length + this.#encoding.length;
  }

  /** What one step of the engine brings. */
  step(events: readonly EngineEvent[]): void {
    this.#hear(events);
  }

  admit({ id }: { id: string }, cachedTokens = 0): void {
    this.step([{ type: 'admitted', id, cachedTokens }]);
  }

  /** One step that brings these tokens to a request. */
  say({ id }: { id: string }, ...tokens: Said[]): void {
    this.step(tokens.map((said) => ({ type: 'token', id, choice: 0, ...said })));
  }

  /** Answers an encode request with one row per sequence. */
  answer({ id, sequences }: EncodeRequest, row: (index: number) => readonly number[]): void {
    this.step([
      { type: 'encoded', id, rows: Float32Array.from(sequences.flatMap((_, index) => row(index))) },
    ]);
  }

  breakDown(error: Error): void {
    this.#fail(error);
  }
}
