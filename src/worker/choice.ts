import type { FinishReason, Logprob } from '../contract/chat.js';
import type { TokenEvent } from '../engine/request.js';
import { Detokenizer } from './detokenizer.js';
import { StopMatcher } from './stop.js';
import type { Tokenizer } from './tokenizer.js';

/** What a token brought to its choice. */
export interface ChoiceStep {
  /** New text or log-probabilities, with the tokens spent on them since the last; undefined when there are none. */
  readonly delta:
    | { readonly text: string; readonly tokens: number; readonly logprobs?: Logprob[] }
    | undefined;
  readonly finish: FinishReason | undefined;
}

export interface ChoiceOptions {
  readonly tokenizer: Tokenizer;
  readonly stops: readonly string[];
  readonly logprobs: boolean;
}

/** Log-probabilities of a token whose text, from character `start` on, is not sent yet. */
interface PendingLogprob {
  readonly start: number;
  readonly logprob: Logprob;
}

/** The text of one choice as its tokens come. Log-probabilities travel with the text of their tokens. */
export class Choice {
  readonly #options: ChoiceOptions;
  readonly #detokenizer: Detokenizer;
  readonly #stop: StopMatcher;
  #pendingLogprobs: PendingLogprob[] = [];
  #tokens = 0;
  /** Characters decoded, and characters sent, of which the rest may be the beginning of a stop sequence. */
  #decoded = 0;
  #sent = 0;
  #finished = false;

  constructor(options: ChoiceOptions) {
    this.#options = options;
    this.#detokenizer = new Detokenizer(options.tokenizer);
    this.#stop = new StopMatcher(options.stops);
  }

  /** No token that comes now changes the choice. */
  get finished(): boolean {
    return this.#finished;
  }

  push(event: TokenEvent): ChoiceStep {
    this.#tokens += 1;
    const isEnd = event.finish === 'end';
    if (!isEnd) this.#keepLogprob(event);
    let decoded = isEnd ? '' : this.#detokenizer.push(event.token);
    if (event.finish !== undefined) decoded += this.#detokenizer.flush();
    this.#decoded += decoded.length;

    let { text, matched } = this.#stop.push(decoded);
    if (event.finish !== undefined && !matched) text += this.#stop.flush();
    this.#sent += text.length;
    const finish = matched || isEnd ? 'stop' : event.finish;
    this.#finished = finish !== undefined;
    return { delta: this.#delta(text, this.#finished && !matched), finish };
  }

  #delta(text: string, everything: boolean): ChoiceStep['delta'] {
    const logprobs = this.#takeLogprobs(everything);
    if (text === '' && logprobs.length === 0) return undefined;
    const tokens = this.#tokens;
    this.#tokens = 0;
    return { text, tokens, ...(this.#options.logprobs && { logprobs }) };
  }

  #keepLogprob({ token, logprob, topLogprobs = [] }: TokenEvent): void {
    if (!this.#options.logprobs || logprob === undefined) return;
    this.#pendingLogprobs.push({
      start: this.#decoded,
      logprob: {
        ...this.#describe(token),
        logprob,
        top_logprobs: topLogprobs.map((top) => ({ ...this.#describe(top.token), logprob: top.logprob })),
      },
    });
  }

  /** Those whose text has been sent, at least in part; at the end, all but those of a stop sequence. */
  #takeLogprobs(everything: boolean): Logprob[] {
    const count = everything
      ? this.#pendingLogprobs.length
      : this.#pendingLogprobs.filter(({ start }) => start < this.#sent).length;
    return this.#pendingLogprobs.splice(0, count).map(({ logprob }) => logprob);
  }

  #describe(token: number): { token: string; bytes: number[] } {
    const bytes = this.#options.tokenizer.describe(token);
    return { token: new TextDecoder().decode(bytes), bytes: [...bytes] };
  }
}
