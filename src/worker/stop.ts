/** What of the text may be sent, and whether a stop sequence has ended it. */
export interface StopResult {
  readonly text: string;
  readonly matched: boolean;
}

/**
 * Looks for stop sequences in the text of one choice, wherever the text is cut into pieces. What might be the
 * beginning of one is held back. The sequence that is complete first ends the text just before it; of several that
 * are complete at the same character, the longest. Linear in the text (Knuth, Morris and Pratt 1977).
 */
export class StopMatcher {
  readonly #sequences: readonly Sequence[];
  #held = '';

  constructor(stops: readonly string[]) {
    // Half a surrogate pair never occurs in decoded text, and matching it would split a character.
    this.#sequences = stops.filter((stop) => !/\p{Surrogate}/u.test(stop)).map((stop) => new Sequence(stop));
  }

  push(text: string): StopResult {
    const pending = this.#held + text;
    for (let index = this.#held.length; index < pending.length; index++) {
      const unit = pending.charCodeAt(index);
      let longest = 0;
      for (const sequence of this.#sequences) {
        if (sequence.advance(unit)) longest = Math.max(longest, sequence.length);
      }
      if (longest > 0) {
        this.#held = '';
        return { text: pending.slice(0, index + 1 - longest), matched: true };
      }
    }
    const holding = Math.max(0, ...this.#sequences.map(({ matched }) => matched));
    this.#held = pending.slice(pending.length - holding);
    return { text: pending.slice(0, pending.length - holding), matched: false };
  }

  /** The text held back, once no more is to come. */
  flush(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}

/** One stop sequence, and how much of its beginning the text ends with. */
class Sequence {
  readonly #text: string;
  /** For each beginning of the sequence, the length of its longest proper end that begins the sequence too. */
  readonly #fallback: Int32Array;
  matched = 0;

  constructor(text: string) {
    this.#text = text;
    this.#fallback = new Int32Array(text.length);
    for (let index = 1, length = 0; index < text.length; index++) {
      while (length > 0 && text[index] !== text[length]) length = this.#fallback[length - 1]!;
      if (text[index] === text[length]) length += 1;
      this.#fallback[index] = length;
    }
  }

  get length(): number {
    return this.#text.length;
  }

  /** Takes one UTF-16 code unit of the text; true when it completes the sequence. */
  advance(unit: number): boolean {
    while (this.matched > 0 && this.#text.charCodeAt(this.matched) !== unit) {
      this.matched = this.#fallback[this.matched - 1]!;
    }
    if (this.#text.charCodeAt(this.matched) === unit) this.matched += 1;
    return this.matched === this.#text.length;
  }
}
