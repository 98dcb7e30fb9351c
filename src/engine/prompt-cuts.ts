/**
 * Where prompts are cut into the pieces that are read in one run each: at multiples of a chunk, but not shortly before
 * the end. The places depend on the prompt's length alone, wherever its reading begins: what a token becomes depends on
 * the cuts before it, and must not depend on what was read earlier.
 */
export class PromptCuts {
  /** Tokens between two cuts. */
  readonly chunk: number;
  /** A cut leaves at least as many tokens: a run costs about as much as reading them. */
  readonly #least: number;

  constructor(chunk: number, least = Math.ceil(chunk / 4)) {
    this.chunk = chunk;
    this.#least = least;
  }

  /** The first cut of a prompt of `length` tokens behind `position`, or its end. */
  next(length: number, position: number): number {
    const cut = position - (position % this.chunk) + this.chunk;
    return length - cut < this.#least ? length : cut;
  }

  /** The last cut of a prompt, or 0: what is before it can be kept for other prompts, or come from them. */
  last(length: number): number {
    const cut = length - (length % this.chunk);
    return length - cut < this.#least ? Math.max(0, cut - this.chunk) : cut;
  }
}
