import type { Tokenizer } from './tokenizer.js';

/**
 * Turns the tokens of one choice into text as they come. Every piece of text is whole characters; the bytes of an
 * unfinished one wait for the rest. The work for a token does not grow with the text before it.
 */
export class Detokenizer {
  readonly #tokenizer: Tokenizer;
  /** Keeps the bytes of an unfinished character. A byte order mark is a character like any other. */
  readonly #bytes = new TextDecoder('utf-8', { ignoreBOM: true });
  /** The token before: decoders treat the first token of a text unlike the others, and look no further back. */
  #previous: number | undefined;

  readonly #spelled: ReadonlySet<number>;

  /** @param spelled control tokens that are text here, as they are spelled. */
  constructor(tokenizer: Tokenizer, spelled: ReadonlySet<number> = new Set()) {
    this.#tokenizer = tokenizer;
    this.#spelled = spelled;
  }

  /** The text that `token` completes; control tokens have none unless they are to be spelled. */
  push(token: number): string {
    const spelling = this.#tokenizer.spellingOf(token);
    if (spelling !== undefined) return this.#spelled.has(token) ? this.flush() + spelling : '';
    const previous = this.#previous;
    this.#previous = token;
    const bytes = this.#tokenizer.bytesOf(token);
    if (bytes !== undefined) return this.#bytes.decode(bytes, { stream: true });
    return this.flush() + this.#tokenizer.decodeAfter(previous, token);
  }

  /** What remains at the end: U+FFFD for bytes that never became a character, else nothing. */
  flush(): string {
    return this.#bytes.decode();
  }
}
