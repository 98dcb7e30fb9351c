import type { ChatRequest } from '../../contract/chat.js';
import { type ServiceClient, ServiceClientError } from './service-client.js';
import { printable, readInput, type Terminal } from './terminal.js';

export interface ChatOptions {
  /** What the user says; `-` reads it from standard input. */
  readonly message: string;
  readonly system?: string;
  /** The first chat model that is online when left out. */
  readonly model?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly seed?: number;
  readonly stream: boolean;
  /** Print the service's answer as one JSON object, which is asked for in one piece. */
  readonly json: boolean;
}

/** `headrace chat`: one message, one reply, printed as it comes. */
export async function chat(
  options: ChatOptions,
  { client, terminal, signal }: { client: ServiceClient; terminal: Terminal; signal: AbortSignal },
): Promise<void> {
  const { stdin, stdout, stderr } = terminal;
  const message = options.message === '-' ? await readInput(stdin, signal) : options.message;
  if (message.trim() === '') throw new ServiceClientError('There is no message to send: it is empty.');

  const model = options.model ?? (await client.models('chat', signal))[0]?.id;
  if (model === undefined) throw new ServiceClientError('The service has no chat model online.');
  const request: ChatRequest = {
    model,
    messages: [
      ...(options.system === undefined ? [] : [{ role: 'system' as const, content: options.system }]),
      { role: 'user', content: message },
    ],
    max_tokens: options.maxTokens,
    temperature: options.temperature,
    seed: options.seed,
  };

  if (options.json) {
    stdout.write(`${JSON.stringify(await client.chat(request, signal), null, 2)}\n`);
    return;
  }
  let finishReason: string | null | undefined;
  let last = '\n';
  const show = (text: string) => {
    last = text;
    stdout.write(stdout.isTTY ? printable(text) : text);
  };
  try {
    if (options.stream) {
      for await (const { choices } of client.streamChat(request, signal)) {
        for (const { delta, finish_reason } of choices) {
          finishReason = finish_reason ?? finishReason;
          if (delta.content) show(delta.content);
        }
      }
    } else {
      const [choice] = (await client.chat(request, signal)).choices;
      finishReason = choice?.finish_reason;
      show(choice?.message.content ?? '');
    }
  } finally {
    // What comes next, an error or a prompt, begins a line of its own.
    if (!last.endsWith('\n')) stdout.write('\n');
  }
  if (finishReason === 'length' && stderr.isTTY) {
    stderr.write('(the reply was cut off by the token limit; --max-tokens sets it)\n');
  }
}
