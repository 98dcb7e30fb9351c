import type { FinishReason, Usage } from '../contract/chat.js';
import type { Spent } from '../contract/frame.js';
import type { ReplyFrame } from './reply.js';
import { event } from './sse.js';

type Delta = Extract<ReplyFrame, { type: 'delta' }>;

/**
 * Turns frames into the events of a streamed chat reply. Only what differs between two chunks is written as JSON each
 * time: this runs once per token of every stream.
 */
export class ChatChunks {
  readonly #head: string;
  readonly #includeUsage: boolean;
  readonly #started = new Set<number>();
  /** The last finish, held back because its chunk carries the usage. */
  #finish: { readonly choice: number; readonly reason: FinishReason } | undefined;

  constructor(options: { id: string; model: string; created: number; includeUsage: boolean }) {
    const { id, model, created, includeUsage } = options;
    const head = JSON.stringify({ id, object: 'chat.completion.chunk', created, model });
    this.#head = head.slice(0, -1);
    this.#includeUsage = includeUsage;
  }

  /** The events that these frames make, in one text; empty when they make none. */
  format(frames: readonly ReplyFrame[]): string {
    let events = '';
    for (const frame of frames) {
      switch (frame.type) {
        case 'started':
          // Nothing was sent of what an earlier attempt brought.
          this.#started.clear();
          this.#finish = undefined;
          break;
        case 'delta':
          events += this.#delta(frame);
          break;
        case 'finish':
          events += this.#heldFinish();
          this.#finish = frame;
          break;
        case 'done': {
          const usage = `,"usage":${JSON.stringify(toUsage(frame.spent))}`;
          events += this.#heldFinish(usage);
          if (this.#includeUsage) events += event(`${this.#head},"choices":[]${usage}}`);
          events += event('[DONE]');
          break;
        }
        case 'ranked':
          throw new Error('A chat request was answered with scores. This is a bug.');
        default:
          frame satisfies never;
      }
    }
    return events;
  }

  #delta({ choice, text, logprobs, toolCalls }: Delta): string {
    const more = logprobs === undefined ? '' : `,"logprobs":${JSON.stringify({ content: logprobs })}`;
    if (toolCalls === undefined) {
      return this.#chunk(choice, `{${this.#role(choice)}"content":${JSON.stringify(text)}}${more}`, 'null');
    }
    let chunks =
      text === ''
        ? ''
        : this.#chunk(choice, `{${this.#role(choice)}"content":${JSON.stringify(text)}}`, 'null');
    // A chunk each: some clients (LangChain) mix up two parts of one call that come in the same chunk.
    for (const [at, call] of toolCalls.entries()) {
      const content = this.#started.has(choice) ? '' : '"content":null,';
      const delta = `{${this.#role(choice)}${content}"tool_calls":[${JSON.stringify(call)}]}`;
      chunks += this.#chunk(choice, at === 0 ? delta + more : delta, 'null');
    }
    return chunks;
  }

  #heldFinish(usage = ''): string {
    if (this.#finish === undefined) return '';
    const { choice, reason } = this.#finish;
    this.#finish = undefined;
    const role = this.#role(choice);
    const first = role === '' ? '' : this.#chunk(choice, `{${role}"content":""}`, 'null');
    return first + this.#chunk(choice, '{}', `"${reason}"`, usage);
  }

  /** The first delta of a choice names the role. */
  #role(choice: number): string {
    if (this.#started.has(choice)) return '';
    this.#started.add(choice);
    return '"role":"assistant",';
  }

  #chunk(choice: number, delta: string, finishReason: string, usage = ''): string {
    const choices = `[{"index":${choice},"delta":${delta},"finish_reason":${finishReason}}]`;
    return event(`${this.#head},"choices":${choices}${usage}}`);
  }
}

export function toUsage({ promptTokens, completionTokens, cachedTokens }: Spent): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}
