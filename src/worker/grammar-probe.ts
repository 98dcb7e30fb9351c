import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Grammar, Vocabulary } from '../engine/grammar.js';
import type { ToolFormat } from './tools/tool-format.js';

/** A form of replies, as JSON, and how calls are written in them. */
export interface ToProbe {
  readonly form: string;
  readonly format: ToolFormat;
}

export type FromProbe =
  | { readonly type: 'ready' }
  | { readonly type: 'sound'; readonly grammar: Grammar }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'empty' };

/**
 * What became of a form. `refused`: a schema in it cannot be honoured, and `message` says where. `empty`: no text has
 * it. `slow`: its grammar takes too long to write and compile. `broken`: the thread gave up.
 */
export type Verdict = Exclude<FromProbe, { type: 'ready' }> | { readonly type: 'slow' | 'broken' };

export interface GrammarProbeOptions {
  /** How long writing and compiling one grammar may take. */
  readonly limitMs: number;
  /** Characters of forms and grammars remembered. */
  readonly maxCharacters?: number;
  /** For how long a form is not tried again that was given up: it may have been slow because all the machine was. */
  readonly retryMs?: number;
  /** The thread's script, for those who do not run the built one beside this file. */
  readonly script?: URL | undefined;
}

/**
 * Turns forms of replies into grammars that compile in time, one after the other, in a thread that may be lost: there
 * are schemas that take for ever, and this process has others to serve.
 */
export class GrammarProbe {
  readonly #vocabulary: Vocabulary;
  readonly #options: Required<GrammarProbeOptions>;
  /** The one asked for last at the end. */
  readonly #verdicts = new Map<string, Promise<Verdict>>();
  readonly #sizes = new Map<string, number>();
  /** Who waits for each form whose turn has not come; undefined for those who never give up. */
  readonly #waiting = new Map<string, (AbortSignal | undefined)[]>();
  #characters = 0;
  #thread: Promise<Worker> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(vocabulary: Vocabulary, options: GrammarProbeOptions) {
    this.#vocabulary = vocabulary;
    this.#options = {
      limitMs: options.limitMs,
      maxCharacters: options.maxCharacters ?? 16_000_000,
      retryMs: options.retryMs ?? 60_000,
      script: options.script ?? new URL('./grammar-probe-thread.js', import.meta.url),
    };
  }

  /** Verdicts remembered. */
  get size(): number {
    return this.#verdicts.size;
  }

  /**
   * @param signal Of whoever waits: a form that nobody waits for when its turn comes is not tried.
   * @throws Error when the probe is closed or its thread cannot start; the signal's reason.
   */
  judge(request: ToProbe, signal?: AbortSignal): Promise<Verdict> {
    const key = `${request.format.name} ${request.form}`;
    this.#waiting.get(key)?.push(signal);
    const verdict = this.#verdicts.get(key) ?? this.#queue(key, request, signal);
    this.#verdicts.delete(key);
    this.#verdicts.set(key, verdict);
    return verdict;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.then((worker) => worker.terminate()).catch(() => {});
  }

  #queue(key: string, request: ToProbe, signal: AbortSignal | undefined): Promise<Verdict> {
    this.#waiting.set(key, [signal]);
    const verdict = this.#last.then(() => {
      const waiting = this.#waiting.get(key)!;
      this.#waiting.delete(key);
      if (waiting.some((one) => !one?.aborted)) return this.#ask(request);
      // At once: whoever asks from now on has not given up.
      this.#verdicts.delete(key);
      throw waiting[0]!.reason;
    });
    this.#last = verdict.then(
      (given) => this.#remember(key, given),
      () => {
        if (this.#verdicts.get(key) === verdict) this.#verdicts.delete(key);
      },
    );
    return verdict;
  }

  #remember(key: string, verdict: Verdict): void {
    const size = key.length + (verdict.type === 'sound' ? verdict.grammar.ebnf.length : 0);
    this.#sizes.set(key, size);
    this.#characters += size;
    if (verdict.type === 'slow' || verdict.type === 'broken') this.#forgetLater(key);
    for (const oldest of this.#verdicts.keys()) {
      if (this.#characters <= this.#options.maxCharacters) return;
      this.#forget(oldest);
    }
  }

  #forgetLater(key: string): void {
    const verdict = this.#verdicts.get(key);
    const forget = () => {
      if (this.#verdicts.get(key) === verdict) this.#forget(key);
    };
    setTimeout(forget, this.#options.retryMs).unref();
  }

  /** One that is still waited for has no size yet, and stays. */
  #forget(key: string): void {
    const size = this.#sizes.get(key);
    if (size === undefined) return;
    this.#verdicts.delete(key);
    this.#sizes.delete(key);
    this.#characters -= size;
  }

  async #ask(request: ToProbe): Promise<Verdict> {
    if (this.#closed) throw new Error('The probe is closed');
    this.#thread ??= this.#start();
    let worker: Worker;
    try {
      worker = await this.#thread;
    } catch (error) {
      this.#thread = undefined;
      throw error;
    }
    const limit = AbortSignal.timeout(this.#options.limitMs);
    try {
      const answer = answerOf(worker, limit);
      worker.postMessage(request);
      const message = await answer;
      if (message.type === 'ready') throw new Error('Grammar probe: ready twice. This is a bug.');
      return message;
    } catch {
      if (this.#closed) throw new Error('The probe is closed');
      this.#thread = undefined;
      await worker.terminate();
      return { type: limit.aborted ? 'slow' : 'broken' };
    }
  }

  async #start(): Promise<Worker> {
    const worker = new Worker(this.#options.script, {
      workerData: this.#vocabulary,
      name: 'grammar-probe',
      // What the compiler says when it aborts is not for the log.
      stderr: true,
    });
    worker.unref();
    worker.once('exit', () => {
      this.#thread = undefined;
    });
    const message = await answerOf(worker);
    if (message.type !== 'ready') throw new Error('Grammar probe: not ready first. This is a bug.');
    // An error between two grammars has nobody to hear it; the next one starts another thread.
    worker.on('error', () => {});
    return worker;
  }
}

/** @throws Error when the thread ends instead, or fails, or the signal is aborted. */
async function answerOf(worker: Worker, signal?: AbortSignal): Promise<FromProbe> {
  const exited = new AbortController();
  const onExit = () => exited.abort(new Error('The thread of the grammar probe ended'));
  worker.once('exit', onExit);
  try {
    const signals = signal ? [signal, exited.signal] : [exited.signal];
    const [message] = (await once(worker, 'message', { signal: AbortSignal.any(signals) })) as [FromProbe];
    return message;
  } catch (error) {
    throw exited.signal.aborted ? exited.signal.reason : error;
  } finally {
    worker.off('exit', onExit);
  }
}
