import type { PromptCuts } from './prompt-cuts.js';

export interface PrefixCacheSettings {
  /** Prompts are stored in the chunks between their cuts. */
  readonly cuts: PromptCuts;
  readonly maxBytes: number;
}

/** A chunk of tokens behind all those of its parents. */
interface Node {
  readonly parent: Node | Root;
  readonly tokens: string;
  readonly bytes: ArrayBuffer;
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
 * Nothing is shared between scopes: how fast an answer comes, and how many tokens it says were cached, would tell one
 * account what another one sends.
 */
export class PrefixCache {
  readonly #settings: PrefixCacheSettings;
  readonly #roots = new Map<string, Root>();
  /** The least recently used first; parents after their children. */
  readonly #byUse = new Set<Node>();
  #bytesUsed = 0;

  constructor(settings: PrefixCacheSettings) {
    this.#settings = settings;
  }

  get bytesUsed(): number {
    return this.#bytesUsed;
  }

  /** The chunks held of a prompt's beginning, from the first one on, up to its last cut. */
  find(scope: string, prompt: Int32Array): ArrayBuffer[] {
    const { cuts } = this.#settings;
    const path: Node[] = [];
    let place: Node | Root | undefined = this.#roots.get(scope);
    const chunks = cuts.last(prompt.length) / cuts.chunk;
    for (let chunk = 0; place && chunk < chunks; chunk++) {
      place = place.children.get(this.#key(prompt, chunk));
      if (place) path.push(place);
    }
    for (const node of path.toReversed()) this.#use(node);
    return path.map(({ bytes }) => bytes);
  }

  /**
   * Stores chunk `index` of a prompt, unless it is there already, or does not fit, or the one before it is gone.
   * `read` is called if it is stored.
   */
  add(scope: string, prompt: Int32Array, index: number, read: () => ArrayBuffer): void {
    let place: Node | Root | undefined = this.#roots.get(scope) ?? { scope, children: new Map() };
    const path: Node[] = [];
    for (let chunk = 0; chunk < index && place; chunk++) {
      place = place.children.get(this.#key(prompt, chunk));
      if (place) path.push(place);
    }
    const tokens = this.#key(prompt, index);
    if (!place || place.children.has(tokens)) return;
    const bytes = read();
    if (bytes.byteLength > this.#settings.maxBytes) return;
    const node: Node = { parent: place, tokens, bytes, children: new Map() };
    place.children.set(tokens, node);
    if ('scope' in place) this.#roots.set(scope, place);
    this.#bytesUsed += bytes.byteLength;
    for (const used of [...path, node].toReversed()) this.#use(used);
    for (const oldest of this.#byUse) {
      if (this.#bytesUsed <= this.#settings.maxBytes) break;
      this.#remove(oldest);
    }
  }

  #key(prompt: Int32Array, chunk: number): string {
    const { chunk: size } = this.#settings.cuts;
    return prompt.subarray(chunk * size, (chunk + 1) * size).join();
  }

  #use(node: Node): void {
    this.#byUse.delete(node);
    this.#byUse.add(node);
  }

  #remove(node: Node): void {
    this.#byUse.delete(node);
    this.#bytesUsed -= node.bytes.byteLength;
    const { parent } = node;
    parent.children.delete(node.tokens);
    if ('scope' in parent && parent.children.size === 0) this.#roots.delete(parent.scope);
  }
}
