import { randomBytes } from 'node:crypto';
import type { FinishReason, Logprob, ToolCallDelta } from '../contract/chat.js';
import type { TokenEvent } from '../engine/request.js';
import { Detokenizer } from './detokenizer.js';
import { StopMatcher } from './stop.js';
import type { Tokenizer } from './tokenizer.js';
import type { ToolFormat } from './tools/tool-format.js';
import { type ReplyPart, ToolParser } from './tools/tool-parser.js';

/** What a token brought to its choice. */
export interface ChoiceStep {
  /** What is new, with the tokens spent on it since the last; undefined when nothing is. */
  readonly delta:
    | {
        readonly text: string;
        readonly tokens: number;
        readonly logprobs?: Logprob[];
        readonly toolCalls?: ToolCallDelta[];
      }
    | undefined;
  readonly finish: FinishReason | undefined;
}

export interface ChoiceOptions {
  readonly tokenizer: Tokenizer;
  readonly stops: readonly string[];
  readonly logprobs: boolean;
  /** How the model writes calls, where the reply may hold any. */
  readonly tools?: {
    readonly format: ToolFormat;
    /** Control tokens that are part of the format. */
    readonly spelledTokens: ReadonlySet<number>;
    /** Whether the reply must call, so that it holds nothing else. */
    readonly required: boolean;
  };
}

/** Log-probabilities of a token whose text, from character `start` on, is not sent yet. */
interface PendingLogprob {
  readonly start: number;
  readonly logprob: Logprob;
}

/**
 * The text of one choice as its tokens come, and the calls in it. Log-probabilities travel with the text of their
 * tokens; where calls are taken out of the text, with whatever comes next. Stop sequences are looked for in the text
 * alone: what a call is made of is not the reader's.
 */
export class Choice {
  readonly #options: ChoiceOptions;
  readonly #detokenizer: Detokenizer;
  readonly #stop: StopMatcher;
  readonly #calls: ToolParser | undefined;
  #pendingLogprobs: PendingLogprob[] = [];
  #tokens = 0;
  /** Characters decoded, and characters sent, of which the rest may be the beginning of a stop sequence. */
  #decoded = 0;
  #sent = 0;
  #finished = false;

  constructor(options: ChoiceOptions) {
    this.#options = options;
    this.#detokenizer = new Detokenizer(options.tokenizer, options.tools?.spelledTokens);
    this.#stop = new StopMatcher(options.stops);
    this.#calls = options.tools && new ToolParser(options.tools.format, options.tools.required);
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

    const parts = this.#partsOf(decoded, event.finish !== undefined);
    const toolCalls: ToolCallDelta[] = [];
    let content = '';
    for (const part of parts) {
      if (part.type === 'content') content += part.text;
      else toolCalls.push(toDelta(part));
    }
    let { text, matched } = this.#stop.push(content);
    if (event.finish !== undefined && !matched) text += this.#stop.flush();
    this.#sent += text.length;
    const finish = matched ? 'stop' : isEnd ? this.#ending() : event.finish;
    this.#finished = finish !== undefined;
    return { delta: this.#delta(text, toolCalls, this.#finished && !matched), finish };
  }

  #partsOf(text: string, isLast: boolean): ReplyPart[] {
    if (this.#calls === undefined) return [{ type: 'content', text }];
    const parts = this.#calls.push(text);
    return isLast ? [...parts, ...this.#calls.flush()] : parts;
  }

  /** Why a choice ends that ends by itself. */
  #ending(): FinishReason {
    return this.#calls !== undefined && this.#calls.calls > 0 ? 'tool_calls' : 'stop';
  }

  #delta(text: string, toolCalls: ToolCallDelta[], everything: boolean): ChoiceStep['delta'] {
    const isNew = text !== '' || toolCalls.length > 0;
    const logprobs = this.#takeLogprobs(everything || (this.#calls !== undefined && isNew));
    if (!isNew && logprobs.length === 0) return undefined;
    const tokens = this.#tokens;
    this.#tokens = 0;
    return {
      text,
      tokens,
      ...(this.#options.logprobs && { logprobs }),
      ...(toolCalls.length > 0 && { toolCalls }),
    };
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

function toDelta(part: Exclude<ReplyPart, { type: 'content' }>): ToolCallDelta {
  const { index } = part;
  if (part.type === 'arguments') return { index, function: { arguments: part.text } };
  const id = `call_${randomBytes(12).toString('hex')}`;
  return { index, id, type: 'function', function: { name: part.name, arguments: '' } };
}
