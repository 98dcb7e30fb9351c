import { exchangeChat } from './chat-exchange.js';
import type { Send } from './exchange.js';
import { type HttpClient, HttpError, readBody } from './http.js';
import { drawPrompt, drawRanking, drawText } from './prompts.js';
import type { Range } from './range.js';
import { exchangeRerank } from './rerank-exchange.js';
import { describeFailure } from './run-load.js';

/** The requests of a run, whichever server they go to. */
export interface Workload {
  readonly task: 'chat' | 'rerank';
  readonly model: string;
  readonly seed: number;
  /** Words of a prompt, or of each document. */
  readonly words: Range;
  readonly maxTokens: Range;
  readonly documents: Range;
  /** Words of a system prompt that all requests share; none when undefined. */
  readonly sharedWords?: number;
  /** Said before the words of each prompt; nothing when undefined. */
  readonly ask?: string;
  /** Fields that every request carries besides, and instead of, those of the client. */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** Requests of `workload` over `client`. */
export function buildSend(client: HttpClient, workload: Workload): Send {
  return workload.task === 'chat' ? buildChat(client, workload) : buildRerank(client, workload);
}

function buildChat(client: HttpClient, workload: Workload): Send {
  const { sharedWords: length, seed, ask } = workload;
  const system =
    length === undefined
      ? []
      : [{ role: 'system', content: drawText(-1, { seed, words: { min: length, max: length } }) }];
  return (index, signal) => {
    const { content, maxTokens } = drawPrompt(index, workload);
    const body = JSON.stringify({
      model: workload.model,
      messages: [...system, { role: 'user', content: ask === undefined ? content : `${ask} ${content}` }],
      max_tokens: maxTokens,
      stream: true,
      stream_options: { include_usage: true },
      ...workload.extra,
    });
    return exchangeChat(client, { body, signal });
  };
}

function buildRerank(client: HttpClient, workload: Workload): Send {
  return (index, signal) => {
    const { query, documents } = drawRanking(index, workload);
    const body = JSON.stringify({ model: workload.model, query, documents, ...workload.extra });
    return exchangeRerank(client, { body, documents: documents.length, signal });
  };
}

/**
 * Makes one small request, so that what is wrong with all of them is said once and before they are made.
 * @throws Error saying what to do.
 */
export async function checkService(
  client: HttpClient,
  workload: Workload,
  signal: AbortSignal,
): Promise<void> {
  const one = { min: 1, max: 1 };
  try {
    await buildSend(client, { ...workload, words: one, maxTokens: one, documents: one })(-1, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw await explain(error, client, signal);
  }
}

async function explain(error: unknown, client: HttpClient, signal: AbortSignal): Promise<Error> {
  if (!(error instanceof HttpError)) {
    const { code } = error as NodeJS.ErrnoException;
    const what = code === undefined ? 'answers otherwise than it should' : 'does not answer';
    return new Error(`${client.url} ${what}: ${describeFailure(error)}`, { cause: error });
  }
  const said = `HTTP ${error.status}: ${error.reason}`;
  if (error.status === 401) {
    const key =
      client.key === undefined ? 'wants a key, given with --key or HEADRACE_KEY' : 'refuses the key';
    return new Error(`${client.url} ${key} (${said})`, { cause: error });
  }
  const models = [400, 404].includes(error.status) ? await listModels(client, signal) : undefined;
  const hint = models === undefined ? '' : `. Models there: ${models.join(', ')}`;
  return new Error(`${client.url} refuses the request (${said})${hint}`, { cause: error });
}

async function listModels(client: HttpClient, signal: AbortSignal): Promise<string[] | undefined> {
  try {
    const { data } = JSON.parse(await readBody(await client.request('/v1/models', { signal })));
    return (data as { id: string }[]).map(({ id }) => id);
  } catch {
    // The refusal alone has to do then.
    return undefined;
  }
}
