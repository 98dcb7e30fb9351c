import type { PromptCuts } from './prompt-cuts.js';

export interface PrefixCacheSettings {
  /** Prompts are stored in the chunks between their cuts. */
  readonly cuts: PromptCuts;
  readonly chunkBytes: number;
  readonly maxBytes: number;
}

/** A chunk of tokens behind all those of its parents. */
interface Node {
  readonly parent: Node | Root;
  readonly tokens: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly children: Map<string, Node>;
}

interface Root {
  readonly scope: string;
  readonly children: Map<string, Node>;
}

/**
 * Keys and values of the beginnings of prompts that were read, for requests that begin alike: a tree of chunks, since
 * what a token leaves depends on all the tokens before it. What was used least recently goes first, leaves before
 * what they grow on.
 *
 * The memory is reserved once, but the system hands it out only as it is first written. A buffer for each chunk would
 * have V8 collect garbage every second for the sake of buffers, and the system clear their pages each time.
 *
 * Nothing is shared between scopes: how fast an answer comes, and how many tokens it says were cached, would tell one
 * account what another one sends.
 */
export class PrefixCache {
  readonly #settings: PrefixCacheSettings;
  readonly #roots = new Map<string, Root>();
  /** The least recently used first; parents after their children. */
  readonly #byUse = new Set<Node>();
  readonly #memory: ArrayBuffer;
  /** Bytes of the memory that chunks have been given. */
  #givenBytes = 0;

  constructor(settings: PrefixCacheSettings) {
    const { chunkBytes, maxBytes } = settings;
    this.#settings = settings;
    this.#memory = new ArrayBuffer(maxBytes - (maxBytes % chunkBytes));
  }

  get bytesUsed(): number {
    return this.#byUse.size * this.#settings.chunkBytes;
  }

  /** The chunks held of a prompt's beginning, from the first one on, up to its last cut. */
  find(scope: string, prompt: Int32Array): Uint8Array<ArrayBuffer>[] {
    const { cuts } = this.#settings;
    const path = this.#walk(scope, prompt, cuts.last(prompt.length) / cuts.chunk);
    this.#use(path);
    return path.map(({ bytes }) => bytes);
  }

  /**
   * Stores chunk `index` of a prompt, unless it is there already, or does not fit, or the one before it is gone.
   * `write` puts its bytes where it is told.
   */
  add(
    scope: string,
    prompt: Int32Array,
    index: number,
    write: (bytes: Uint8Array<ArrayBuffer>) => void,
  ): void {
    const path = this.#walk(scope, prompt, index);
    if (path.length < index) return;
    const parent = path.at(-1) ?? this.#roots.get(scope) ?? { scope, children: new Map() };
    const tokens = this.#key(prompt, index);
    if (parent.children.has(tokens)) return;
    const bytes = this.#place(path);
    if (!bytes) return;
    write(bytes);
    const node: Node = { parent, tokens, bytes, children: new Map() };
    parent.children.set(tokens, node);
    if ('scope' in parent) this.#roots.set(scope, parent);
    this.#use([...path, node]);
  }

  /** Memory for a chunk behind `path`, which stays. */
  #place(path: readonly Node[]): Uint8Array<ArrayBuffer> | undefined {
    const { chunkBytes } = this.#settings;
    if (this.#givenBytes < this.#memory.byteLength) {
      this.#givenBytes += chunkBytes;
      return new Uint8Array(this.#memory, this.#givenBytes - chunkBytes, chunkBytes);
    }
    this.#use(path);
    const [oldest] = this.#byUse;
    if (!oldest || path.includes(oldest)) return undefined;
    this.#remove(oldest);
    return oldest.bytes;
  }

  /** The first chunks of a prompt, as many of `count` as are held. */
  #walk(scope: string, prompt: Int32Array, count: number): Node[] {
    const path: Node[] = [];
    let place: Node | Root | undefined = this.#roots.get(scope);
    for (let chunk = 0; place && chunk < count; chunk++) {
      place = place.children.get(this.#key(prompt, chunk));
      if (place) path.push(place);
    }
    return path;
  }

  #key(prompt: Int32Array, chunk: number): string {
    const { chunk: size } = this.#settings.cuts;
    return prompt.subarray(chunk * size, (chunk + 1) * size).join();
  }

  /** Notes that a path of chunks, the first one first, was used just now. */
  #use(path: readonly Node[]): void {
    for (const node of path.toReversed()) {
      this.#byUse.delete(node);
      this.#byUse.add(node);
    }
  }

  #remove(node: Node): void {
    this.#byUse.delete(node);
    const { parent } = node;
    parent.children.delete(node.tokens);
    if ('scope' in parent && parent.children.size === 0) this.#roots.delete(parent.scope);
  }
}
