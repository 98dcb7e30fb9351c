import { abortable } from '../platform/abortable.js';
import { textPieces } from './text-pieces.js';
import type { Tokenizer } from './tokenizer.js';

export interface TextReaderOptions {
  readonly tokenizer: Pick<Tokenizer, 'encode' | 'encodeBatch'>;
  /** Texts, and UTF-16 units of text, that are tokenized in one call at most. */
  readonly callTexts: number;
  readonly callCharacters: number;
}

export interface ReadOptions {
  /** Tokens of a text that are wanted, from its start. */
  readonly maxTokens: number;
  /** Between two calls of the tokenizer, reading can end. */
  readonly signal: AbortSignal;
}

/** A text and its first tokens: all of them, or at least as many as were wanted. */
export interface ReadText {
  readonly text: string;
  readonly tokens: Int32Array;
}

/**
 * Tokenizes texts of any number and length in calls of bounded size, because a call cannot be broken off and takes
 * some 150 bytes of memory for each character. Of a long text no more is read than is wanted.
 */
export class TextReader {
  readonly #options: TextReaderOptions;

  constructor(options: TextReaderOptions) {
    this.#options = options;
  }

  /** @returns As {@link ReadText}. @throws The signal's reason when it aborts. */
  async tokensOf(text: string, { maxTokens, signal }: ReadOptions): Promise<Int32Array> {
    const { tokenizer, callCharacters } = this.#options;
    const parts: Int32Array[] = [];
    let length = 0;
    for (const piece of textPieces(text, callCharacters)) {
      signal.throwIfAborted();
      const part = await abortable(tokenizer.encode(piece), signal);
      parts.push(part);
      length += part.length;
      if (length >= maxTokens) break;
    }
    return parts.length === 1 ? parts[0]! : joined(parts, length);
  }

  /** Reads texts in their order, those of one call at a time. @throws The signal's reason when it aborts. */
  async *read(texts: Iterable<string>, options: ReadOptions): AsyncGenerator<ReadText[]> {
    const { tokenizer, callTexts, callCharacters } = this.#options;
    let call: string[] = [];
    let characters = 0;
    const readCall = async () => {
      options.signal.throwIfAborted();
      const encoded = await abortable(tokenizer.encodeBatch(call), options.signal);
      return encoded.map((tokens, index) => ({ text: call[index]!, tokens }));
    };
    for (const text of texts) {
      if (call.length === callTexts || (call.length > 0 && characters + text.length > callCharacters)) {
        yield await readCall();
        call = [];
        characters = 0;
      }
      if (text.length > callCharacters) {
        yield [{ text, tokens: await this.tokensOf(text, options) }];
      } else {
        call.push(text);
        characters += text.length;
      }
    }
    if (call.length > 0) yield await readCall();
  }
}

function joined(parts: readonly Int32Array[], length: number): Int32Array {
  const tokens = new Int32Array(length);
  let offset = 0;
  for (const part of parts) {
    tokens.set(part, offset);
    offset += part.length;
  }
  return tokens;
}
