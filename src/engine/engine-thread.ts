import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Manifest } from '../models/manifest.js';
import type { Engine, EngineSettings } from './engine.js';
import type { Vocabulary } from './grammar.js';
import type { EncodeRequest, EngineCounters, EngineEvent, GenerateRequest } from './request.js';
import { type FromThread, packEncodeRequest, type ThreadData, type ToThread } from './thread-messages.js';

export interface EngineThreadOptions {
  /** Gives up the start; of no meaning once the engine is there. */
  readonly signal: AbortSignal;
  /** The thread's script, for those who do not run the built one beside this file. */
  readonly script?: URL;
}

/** How long a thread may take to finish its step and leave. */
const closeTimeoutMs = 10_000;

/**
 * Starts an engine in a thread of its own and waits until its model is loaded.
 * @throws Error when the folder is not a compiled model or the runtime cannot load it; the signal's reason when
 * aborted. The thread is gone then.
 */
export async function startEngineThread(
  settings: EngineSettings,
  { signal, script = new URL('./thread.js', import.meta.url) }: EngineThreadOptions,
): Promise<Engine> {
  signal.throwIfAborted();
  const data: ThreadData = { settings };
  const worker = new Worker(script, { workerData: data, name: 'engine' });
  const exited = new AbortController();
  worker.once('exit', () => exited.abort(new Error('The engine ended before its model was loaded')));
  try {
    const [message] = (await once(worker, 'message', {
      signal: AbortSignal.any([signal, exited.signal]),
    })) as [FromThread];
    if (message.type !== 'ready') throw new Error('Engine thread: not ready first. This is a bug.');
    return new EngineThread(worker, message.manifest);
  } catch (error) {
    await worker.terminate();
    signal.throwIfAborted();
    if (exited.signal.aborted && isAbort(error)) throw exited.signal.reason;
    throw error;
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** The worker's side of an engine thread. */
class EngineThread implements Engine {
  readonly manifest: Manifest;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  readonly #asks = new Map<number, PromiseWithResolvers>();
  #asked = 0;
  #closing = false;
  /** Why the engine is gone; undefined while it is there. */
  #gone: Error | undefined;
  #eventsListener: (events: readonly EngineEvent[]) => void = () => {};
  #failureListener: ((error: Error) => void) | undefined;

  constructor(worker: Worker, manifest: Manifest) {
    this.manifest = manifest;
    this.#worker = worker;
    worker.on('message', (message: FromThread) => this.#receive(message));
    worker.on('error', (error) => this.#leave(error));
    this.#exited = new Promise((resolve) => {
      worker.once('exit', (code) => {
        this.#leave(
          new Error(this.#closing ? 'The engine is closed' : `The engine's thread ended (${code})`),
        );
        resolve();
      });
    });
  }

  useVocabulary(vocabulary: Vocabulary): void {
    this.#post({ type: 'vocabulary', vocabulary });
  }

  generate(request: GenerateRequest): void {
    if (this.manifest.kind !== 'decoder') throw new Error('An encoder cannot generate');
    const prompt = request.prompt.slice();
    this.#post({ type: 'generate', request: { ...request, prompt } }, [prompt.buffer]);
  }

  encode(request: EncodeRequest): void {
    if (this.manifest.kind !== 'encoder') throw new Error('A decoder cannot encode');
    const packed = packEncodeRequest(request);
    const arrays = [packed.lengths, packed.tokens, ...(packed.types ? [packed.types] : [])];
    this.#post(
      { type: 'encode', request: packed },
      arrays.map((array) => array.buffer as ArrayBuffer),
    );
  }

  cancel(id: string, choice?: number): void {
    if (!this.#gone) this.#post({ type: 'cancel', id, choice });
  }

  async counters(): Promise<EngineCounters> {
    const ask = this.#asked++;
    this.#post({ type: 'counters', ask });
    return new Promise((resolve, reject) => {
      this.#asks.set(ask, { resolve, reject });
    });
  }

  onEvents(listener: (events: readonly EngineEvent[]) => void): void {
    this.#eventsListener = listener;
  }

  onFailure(listener: (error: Error) => void): void {
    this.#failureListener = listener;
    if (this.#gone && !this.#closing) listener(this.#gone);
  }

  async close(): Promise<void> {
    if (!this.#closing && !this.#gone) {
      this.#post({ type: 'close' });
      this.#closing = true;
    }
    const timer = setTimeout(() => void this.#worker.terminate(), closeTimeoutMs);
    try {
      await this.#exited;
    } finally {
      clearTimeout(timer);
    }
  }

  #post(message: ToThread, transfer: ArrayBuffer[] = []): void {
    if (this.#gone || this.#closing) throw this.#gone ?? new Error('The engine is closed');
    this.#worker.postMessage(message, transfer);
  }

  #receive(message: FromThread): void {
    switch (message.type) {
      case 'events':
        this.#eventsListener(message.events);
        break;
      case 'counters':
        this.#asks.get(message.ask)?.resolve(message.counters);
        this.#asks.delete(message.ask);
        break;
      case 'ready':
        throw new Error('Engine thread: ready twice. This is a bug.');
      default:
        message satisfies never;
    }
  }

  /** The first reason counts. */
  #leave(reason: Error): void {
    if (this.#gone) return;
    this.#gone = reason;
    for (const { reject } of this.#asks.values()) reject(reason);
    this.#asks.clear();
    if (!this.#closing) this.#failureListener?.(reason);
  }
}

interface PromiseWithResolvers {
  readonly resolve: (counters: EngineCounters) => void;
  readonly reject: (reason: Error) => void;
}
