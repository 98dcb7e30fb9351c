import { ServiceError } from '../contract/errors.js';

/** Characters of Unicode's private use area: no published text gives them a meaning. */
const firstMark = 0xe000;
const lastMark = 0xf8ff;
const marks = /[\uE000-\uF8FF]/g;

/**
 * Carries text of users through a chat template so that nothing in it can be taken for a control token. The first
 * character of whatever looks like one is exchanged for a private character, which no spelling contains, and
 * exchanged back after the template's own control tokens were marked. The text's length stays, and what templates
 * look at (white space at the ends, other tags) stays too.
 */
export class SpecialShield {
  readonly #riskyPositions: (text: string) => ReadonlySet<number>;
  readonly #taken: ReadonlySet<string>;
  readonly #markOf = new Map<string, string>();
  readonly #originalOf = new Map<string, string>();
  #next = firstMark;

  /** `riskyPositions` says which characters of a text, as indices, are to be exchanged. */
  constructor(riskyPositions: (text: string) => ReadonlySet<number>, surroundings: readonly string[]) {
    this.#riskyPositions = riskyPositions;
    this.#taken = new Set(surroundings.flatMap((text) => text.match(marks) ?? []));
  }

  protect(text: string): string {
    const positions = this.#riskyPositions(text);
    if (positions.size === 0) return text;
    let result = '';
    let copied = 0;
    for (const position of [...positions].sort((a, b) => a - b)) {
      result += text.slice(copied, position) + this.#mark(text[position]!);
      copied = position + 1;
    }
    return result + text.slice(copied);
  }

  /** Undoes `protect`, in whatever the protected text has become part of. */
  restore(text: string): string {
    if (this.#originalOf.size === 0) return text;
    return text.replace(marks, (mark) => this.#originalOf.get(mark) ?? mark);
  }

  #mark(character: string): string {
    const known = this.#markOf.get(character);
    if (known !== undefined) return known;
    while (this.#taken.has(String.fromCharCode(this.#next))) this.#next += 1;
    if (this.#next > lastMark) {
      throw new ServiceError('invalidParameter', 'messages: every private character of Unicode is in use');
    }
    const mark = String.fromCharCode(this.#next);
    this.#next += 1;
    this.#markOf.set(character, mark);
    this.#originalOf.set(mark, character);
    return mark;
  }
}
