import { randomUUID } from 'node:crypto';
import { SpecialShield } from './special-shield.js';

/** A control token as the model's authors spell it, and the name it goes by in text handed to the tokenizer. */
export interface SpecialToken {
  readonly spelling: string;
  readonly name: string;
}

/**
 * The control tokens of a tokenizer. Their published spellings (`<|im_end|>`) are nothing special to the tokenizer
 * here: it knows each by a name nobody can type, so that text of users can never end a turn or open another. Only
 * `mark` puts those names into a text, in place of the spellings that a chat template wrote.
 */
export class SpecialTokens {
  readonly #names: ReadonlyMap<string, string>;
  readonly #spellings: ReadonlyMap<string, string>;
  readonly #pattern: RegExp | undefined;
  readonly #shieldPattern: RegExp | undefined;
  /** Every proper beginning and every proper end of a spelling. */
  readonly #beginnings = new Set<string>();
  readonly #ends = new Set<string>();
  readonly #longest: number;

  constructor(spellings: Iterable<string>) {
    const secret = randomUUID();
    const tokens = [...new Set(spellings)]
      .filter((spelling) => spelling !== '')
      .map((spelling, index): SpecialToken => ({ spelling, name: `<|${secret}:${index}|>` }));
    this.#names = new Map(tokens.map(({ spelling, name }) => [spelling, name]));
    this.#spellings = new Map(tokens.map(({ spelling, name }) => [name, spelling]));
    this.#longest = Math.max(0, ...tokens.map(({ spelling }) => spelling.length));
    for (const { spelling } of tokens) {
      for (let length = 1; length < spelling.length; length++) {
        this.#beginnings.add(spelling.slice(0, length));
        this.#ends.add(spelling.slice(-length));
      }
    }
    if (tokens.length === 0) return;
    // Of several that begin at one place the longest is meant, as in the tokenizers library.
    const longestFirst = tokens.map(({ spelling }) => spelling).sort((a, b) => b.length - a.length);
    const alternatives = longestFirst.map((spelling) => spelling.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
    this.#pattern = new RegExp(alternatives.join('|'), 'gu');
    this.#shieldPattern = new RegExp(`(?=${alternatives.join('|')})[^]`, 'gu');
  }

  /** The name of the control token spelled so; undefined when there is none. */
  nameOf(spelling: string): string | undefined {
    return this.#names.get(spelling);
  }

  /** The spelling of the control token of this name; undefined when `token` is an ordinary one. */
  spellingOf(token: string): string | undefined {
    return this.#spellings.get(token);
  }

  /** Puts names in place of spellings: what a template wrote becomes control tokens. */
  mark(rendered: string): string {
    if (this.#pattern === undefined) return rendered;
    return rendered.replace(this.#pattern, (spelling) => this.#names.get(spelling)!);
  }

  /**
   * A shield for one rendering. `surroundings` is everything else the rendered text is made of, the template's
   * source and the texts themselves: the shield uses characters that occur nowhere in them.
   */
  shield(surroundings: readonly string[]): SpecialShield {
    return new SpecialShield((text) => this.#riskyPositions(text), surroundings);
  }

  /**
   * Where `text` holds the first character of a spelling, and where it might complete one together with its
   * neighbours: an end that begins a spelling, a beginning that ends one, or the middle of one.
   */
  #riskyPositions(text: string): Set<number> {
    const positions = new Set<number>();
    if (this.#shieldPattern === undefined) return positions;
    for (const { index } of text.matchAll(this.#shieldPattern)) positions.add(index);
    for (let length = 1; length < this.#longest && length <= text.length; length++) {
      if (this.#beginnings.has(text.slice(-length))) positions.add(text.length - length);
      if (this.#ends.has(text.slice(0, length))) positions.add(0);
    }
    if (text !== '' && text.length < this.#longest && this.#isInsideSpelling(text)) positions.add(0);
    return positions;
  }

  #isInsideSpelling(text: string): boolean {
    for (const spelling of this.#names.keys()) if (spelling.includes(text)) return true;
    return false;
  }
}
