import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Vocabulary } from './grammar.js';

export interface ToProbe {
  readonly ebnf: string;
}

export type FromProbe = { readonly type: 'ready' | 'sound' | 'empty' };

/** What became of a grammar. `slow`: it takes too long to compile. `broken`: the compiler gave up. */
export type Verdict = 'sound' | 'empty' | 'slow' | 'broken';

export interface GrammarProbeOptions {
  /** How long compiling one grammar may take. */
  readonly limitMs: number;
  /** Verdicts remembered. */
  readonly maxRemembered?: number;
  /** The thread's script, for those who do not run the built one beside this file. */
  readonly script?: URL | undefined;
}

/**
 * Finds out whether grammars compile in time, one after the other, in a thread that may be lost: an engine that
 * compiled an endless one would stop for everybody.
 */
export class GrammarProbe {
  readonly #vocabulary: Vocabulary;
  readonly #options: Required<GrammarProbeOptions>;
  /** By EBNF, the one asked for last at the end. */
  readonly #verdicts = new Map<string, Promise<Verdict>>();
  #thread: Promise<Worker> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(vocabulary: Vocabulary, options: GrammarProbeOptions) {
    this.#vocabulary = vocabulary;
    this.#options = {
      limitMs: options.limitMs,
      maxRemembered: options.maxRemembered ?? 1_000,
      script: options.script ?? new URL('./grammar-probe-thread.js', import.meta.url),
    };
  }

  /** @throws Error when the probe is closed or its thread cannot start. */
  judge(ebnf: string): Promise<Verdict> {
    const known = this.#verdicts.get(ebnf);
    const verdict = known ?? this.#queue(ebnf);
    this.#verdicts.delete(ebnf);
    this.#verdicts.set(ebnf, verdict);
    if (this.#verdicts.size > this.#options.maxRemembered) {
      this.#verdicts.delete(this.#verdicts.keys().next().value!);
    }
    return verdict;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.then((worker) => worker.terminate()).catch(() => {});
  }

  #queue(ebnf: string): Promise<Verdict> {
    const verdict = this.#last.then(() => this.#compile(ebnf));
    this.#last = verdict.catch(() => this.#verdicts.delete(ebnf));
    return verdict;
  }

  async #compile(ebnf: string): Promise<Verdict> {
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
    const answer = once(worker, 'message', { signal: limit });
    worker.postMessage({ ebnf } satisfies ToProbe);
    try {
      const [{ type }] = (await answer) as [FromProbe];
      if (type === 'ready') throw new Error('Grammar probe: ready twice. This is a bug.');
      return type;
    } catch {
      if (this.#closed) throw new Error('The probe is closed');
      this.#thread = undefined;
      await worker.terminate();
      return limit.aborted ? 'slow' : 'broken';
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
    const [message] = (await once(worker, 'message')) as [FromProbe];
    if (message.type !== 'ready') throw new Error('Grammar probe: not ready first. This is a bug.');
    // An error between two grammars has nobody to hear it; the next one finds the thread gone.
    worker.on('error', () => {});
    return worker;
  }
}
