import { ServiceError } from '../contract/errors.js';
import { abortable } from '../platform/abortable.js';
import { textPieces } from './text-pieces.js';
import type { Tokenizer } from './tokenizer.js';

export interface PromptReaderOptions {
  readonly tokenizer: Pick<Tokenizer, 'encode'>;
  /** Positions of prompt and completion together. */
  readonly contextLength: number;
  /** UTF-16 units that are tokenized at once without a thought. */
  readonly callCharacters?: number;
}

/**
 * Tokens that a cut may add: most where it goes through the name of a control token (see `special-tokens.ts`), which
 * has fewer characters than this.
 */
const tokensPerCut = 64;

/**
 * Tokenizes prompts, in one call, since a prompt that is cut may become other tokens. A call cannot be broken off and
 * takes seconds for megabytes: what is too long for the context is found to be so in pieces, as far as need be.
 */
export class PromptReader {
  readonly #options: Required<PromptReaderOptions>;

  constructor(options: PromptReaderOptions) {
    this.#options = { callCharacters: 65_536, ...options };
  }

  /**
   * @returns The tokens, at least one and fewer than the context has positions.
   * @throws ServiceError invalidParameter when they are none or too many; the signal's reason when it aborts.
   */
  async read(text: string, signal: AbortSignal): Promise<Int32Array> {
    const { tokenizer, contextLength, callCharacters } = this.#options;
    if (text.length > callCharacters) await this.#refuseTooLong(text, signal);
    const tokens = await abortable(tokenizer.encode(text), signal);
    if (tokens.length === 0) {
      throw new ServiceError('invalidParameter', 'messages: the chat template makes no prompt of them');
    }
    if (tokens.length >= contextLength) throw this.#tooLong(`${tokens.length}`);
    return tokens;
  }

  /** Lets a text pass only if it has no more characters than its tokens can be expected to fit. */
  async #refuseTooLong(text: string, signal: AbortSignal): Promise<void> {
    const { tokenizer, contextLength, callCharacters } = this.#options;
    let atLeast = 0;
    for (const piece of textPieces(text, callCharacters)) {
      const { length } = await abortable(tokenizer.encode(piece), signal);
      atLeast += Math.max(0, length - tokensPerCut);
      if (atLeast >= contextLength) throw this.#tooLong(`more than ${contextLength}`);
    }
  }

  #tooLong(tokens: string): ServiceError {
    return new ServiceError(
      'invalidParameter',
      `messages: the prompt has ${tokens} tokens, which leaves no room in the context of ${this.#options.contextLength}`,
    );
  }
}
