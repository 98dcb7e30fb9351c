import type { FastifyReply } from 'fastify';
import type { ChatResponse, FinishReason, Logprob, ToolCall, ToolCallDelta } from '../contract/chat.js';
import { ChatChunks, toUsage } from './chat-chunks.js';
import { explain } from './errors.js';
import { ClientGone, type Reply } from './reply.js';
import { EventStream } from './sse.js';
import { setTimingHeaders } from './timing-headers.js';

/** What every form of a chat reply says of itself. */
export interface ChatReplyHead {
  readonly id: string;
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
}

interface GatheredChoice {
  text: string;
  readonly toolCalls: ToolCall[];
  logprobs: Logprob[] | undefined;
  finishReason: FinishReason;
}

/**
 * Sends the reply as it comes. An error before the first event is thrown, to become an ordinary response; a later
 * one is the stream's last event.
 */
export async function streamChat(
  reply: Reply,
  options: { head: ChatReplyHead; includeUsage: boolean; response: FastifyReply; keepAliveMs: number },
): Promise<void> {
  const { head, includeUsage, response, keepAliveMs } = options;
  const stream = new EventStream(response, { keepAliveMs });
  try {
    const chunks = new ChatChunks({ ...head, includeUsage });
    for await (const frames of reply) {
      const [first] = frames;
      if (first?.type === 'started' && !stream.opened) setTimingHeaders(response, first);
      const events = chunks.format(frames);
      if (events === '') continue;
      reply.commit();
      if (frames.at(-1)!.type === 'done') stream.end(events);
      else await stream.write(events, reply.signal);
    }
  } catch (error) {
    const failure = reply.signal.aborted ? reply.signal.reason : error;
    if (!stream.opened) throw failure;
    // An open stream is not Fastify's any more, and nobody reads on.
    if (!(failure instanceof ClientGone)) stream.fail(explain(failure, response.log));
  } finally {
    stream.abandon();
  }
}

/** The whole reply as one body. */
export async function gatherChat(
  reply: Reply,
  { head, response }: { head: ChatReplyHead; response: FastifyReply },
): Promise<ChatResponse> {
  const choices = new Map<number, GatheredChoice>();
  const choiceAt = (index: number): GatheredChoice => {
    const choice = choices.get(index) ?? {
      text: '',
      toolCalls: [],
      logprobs: undefined,
      finishReason: 'stop',
    };
    choices.set(index, choice);
    return choice;
  };
  for await (const frames of reply) {
    for (const frame of frames) {
      switch (frame.type) {
        case 'started':
          choices.clear();
          break;
        case 'delta': {
          const choice = choiceAt(frame.choice);
          choice.text += frame.text;
          for (const delta of frame.toolCalls ?? []) addToolCall(choice.toolCalls, delta);
          if (frame.logprobs !== undefined) choice.logprobs = [...(choice.logprobs ?? []), ...frame.logprobs];
          break;
        }
        case 'finish':
          choiceAt(frame.choice).finishReason = frame.reason;
          break;
        case 'done':
          setTimingHeaders(response, frame.timings);
          return toResponse(head, { choices, usage: toUsage(frame.spent) });
        case 'ranked':
          throw new Error('A chat request was answered with scores. This is a bug.');
        default:
          frame satisfies never;
      }
    }
  }
  throw new Error('The reply ended without its last frame. This is a bug.');
}

function toResponse(
  { id, model, created }: ChatReplyHead,
  { choices, usage }: { choices: ReadonlyMap<number, GatheredChoice>; usage: ChatResponse['usage'] },
): ChatResponse {
  const inOrder = [...choices].sort(([a], [b]) => a - b);
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: inOrder.map(([index, { text, toolCalls, logprobs, finishReason }]) => ({
      index,
      message:
        toolCalls.length > 0
          ? { role: 'assistant', content: text === '' ? null : text, tool_calls: toolCalls }
          : { role: 'assistant', content: text },
      ...(logprobs === undefined ? {} : { logprobs: { content: logprobs } }),
      finish_reason: finishReason,
    })),
    usage,
  };
}

/** Puts what a delta brings where its index says. */
function addToolCall(
  calls: ToolCall[],
  { index, id = '', function: { name, arguments: text = '' } }: ToolCallDelta,
) {
  const call = calls[index];
  if (call !== undefined) call.function.arguments += text;
  else calls[index] = { id, type: 'function', function: { name: name ?? '', arguments: text } };
}
