import {
  type Grammar,
  type GrammarFollower,
  type StringRule,
  stringMarker,
  stringSeal,
  type Vocabulary,
} from './grammar.js';
import type { GrammarMatcher } from './grammar-library.js';
import { StringProgress, type StringTokens } from './grammar-strings.js';

const quote = 0x22;

export interface GrammarTextOptions {
  readonly vocabulary: Vocabulary;
  readonly strings: StringTokens;
  readonly grammar: Grammar;
}

/**
 * One text as it follows its grammar. xgrammar follows the rules; beside it, the strings that have a rule of their
 * own ({@link StringRule}) are counted here.
 */
export class GrammarText implements GrammarFollower {
  readonly #matcher: GrammarMatcher;
  readonly #strings: StringTokens;
  readonly #rules: readonly StringRule[];
  readonly #endTokens: ReadonlySet<number>;
  /** The string with a rule that the text may be in. */
  #string: StringProgress | undefined;

  /** The matcher is disposed with the text. */
  constructor(matcher: GrammarMatcher, { vocabulary, strings, grammar }: GrammarTextOptions) {
    this.#matcher = matcher;
    this.#strings = strings;
    this.#rules = grammar.strings;
    this.#endTokens = new Set(vocabulary.endTokens);
  }

  async allowed(): Promise<Int32Array> {
    if (this.#string && !this.#isInRule(this.#string)) this.#string = undefined;
    const mask = await this.#matcher.getNextTokenBitmask();
    if (this.#rules.length === 0) return mask;
    remove(mask, this.#strings.secret);
    if (this.#string) await this.#keepRule(mask, this.#string);
    if (!this.#takesAnything()) this.#keepOutOfStrings(mask);
    return mask;
  }

  accept(token: number): void {
    if (!this.#matcher.acceptToken(token)) throw new Error(`The grammar does not allow token ${token}`);
    if (this.#rules.length === 0 || this.#endTokens.has(token)) return;
    const bytes = this.#strings.bytesOf(token);
    let opening = bytes.at(-1) === quote;
    const string = this.#string;
    if (string) {
      const closing = bytes.findIndex((byte) => string.push(byte));
      if (closing === -1) return;
      this.#string = undefined;
      const isLast = closing === bytes.length - 1;
      if (isLast && string.mayEnd) this.#matcher._acceptString(stringSeal);
      opening &&= !isLast;
    }
    if (opening) this.#string = this.#begun();
  }

  dispose(): void {
    this.#matcher.dispose();
  }

  /** Whether the text is still one that the rule speaks of, and not only something that begins alike. */
  #isInRule(string: StringProgress): boolean {
    return !string.rule.endsAnywhere || !string.isWhole || this.#takes(`"${stringSeal}`);
  }

  /** Takes out the tokens that would break the rule of the string the text is in. */
  async #keepRule(mask: Int32Array, string: StringProgress): Promise<void> {
    const { rule } = string;
    const { longest, odd } = this.#strings;
    const left = rule.maxLength - string.length;
    if (left < longest) remove(mask, this.#strings.longerThan(Math.max(0, left)));
    const isFree = rule.excluded.length === 0;
    if (isFree && left >= longest && string.length >= rule.minLength) return;
    const endsOtherwise = string.mayEnd || (await this.#endsOtherwise());
    for (const token of odd) {
      if (!has(mask, token)) continue;
      if (!fits(string.clone(), this.#strings.bytesOf(token), endsOtherwise)) clear(mask, token);
    }
    if (isFree || left > longest) return;
    for (const tokens of [odd, this.#strings.whole]) {
      for (const token of tokens) {
        if (!has(mask, token) || !isStuck(string.clone(), this.#strings.bytesOf(token))) continue;
        if (!(await this.#endsOtherwiseBehind(token))) clear(mask, token);
      }
    }
  }

  /** Whether something without a rule may end where the text stands. */
  async #endsOtherwise(): Promise<boolean> {
    if (!this.#matcher._acceptString('"')) return false;
    const mask = await this.#matcher.getNextTokenBitmask();
    this.#matcher.rollBack(1);
    remove(mask, this.#strings.secret);
    return mask.some((word) => word !== 0);
  }

  async #endsOtherwiseBehind(token: number): Promise<boolean> {
    if (!this.#matcher.acceptToken(token)) return false;
    const ends = await this.#endsOtherwise();
    this.#matcher.rollBack(1);
    return ends;
  }

  /** Takes out the tokens that would begin a string with a rule and go on in it, uncounted. */
  #keepOutOfStrings(mask: Int32Array): void {
    for (const token of this.#strings.crossing) {
      if (has(mask, token) && this.#crosses(this.#strings.bytesOf(token))) clear(mask, token);
    }
  }

  #crosses(bytes: Uint8Array): boolean {
    for (
      let at = bytes.indexOf(quote);
      at !== -1 && at < bytes.length - 1;
      at = bytes.indexOf(quote, at + 1)
    ) {
      const beginning = decode(bytes.subarray(0, at + 1));
      // What is no text by itself cannot be shown to the matcher.
      if (beginning === undefined || !this.#matcher._acceptString(beginning)) return true;
      const begins = this.#rules.some((_, index) => this.#takes(stringMarker(index)));
      this.#matcher.rollBack(1);
      if (begins) return true;
    }
    return false;
  }

  /** The string that may have begun with a rule; where several may be meant, all of their rules hold. */
  #begun(): StringProgress | undefined {
    if (this.#takesAnything()) return undefined;
    const rules = this.#rules.filter((_, index) => this.#takes(stringMarker(index)));
    if (rules.length === 0) return undefined;
    return new StringProgress({
      minLength: Math.max(...rules.map(({ minLength }) => minLength)),
      maxLength: Math.min(...rules.map(({ maxLength }) => maxLength)),
      excluded: rules.flatMap(({ excluded }) => excluded),
      endsAnywhere: rules.every(({ endsAnywhere }) => endsAnywhere),
    });
  }

  /** Whether the text is outside every rule, where a marker is as good as any other. */
  #takesAnything(): boolean {
    return this.#takes('\u0001\u0001');
  }

  #takes(text: string): boolean {
    if (!this.#matcher._acceptString(text)) return false;
    this.#matcher.rollBack(1);
    return true;
  }
}

/** Whether a string may go on with these bytes; `mayEnd` says whether it may end where it stands. */
function fits(string: StringProgress, bytes: Uint8Array, mayEnd: boolean): boolean {
  for (const [at, byte] of bytes.entries()) {
    if (string.push(byte)) {
      // What goes on behind the quote has no seal: it is not the string that the rule speaks of.
      return at < bytes.length - 1 || string.mayEnd || (at === 0 && mayEnd);
    }
    if (string.length > string.rule.maxLength) return false;
  }
  return true;
}

/** Whether a string would have neither room nor an end behind these bytes. */
function isStuck(string: StringProgress, bytes: Uint8Array): boolean {
  if (bytes.some((byte) => string.push(byte))) return false;
  return string.length === string.rule.maxLength && string.isExcluded;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

function remove(mask: Int32Array, other: Int32Array): void {
  for (let word = 0; word < mask.length; word++) mask[word]! &= ~other[word]!;
}

function has(mask: Int32Array, token: number): boolean {
  return ((mask[token >> 5]! >>> (token & 31)) & 1) === 1;
}

function clear(mask: Int32Array, token: number): void {
  mask[token >> 5]! &= ~(1 << (token & 31));
}
