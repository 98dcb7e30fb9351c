import { readText } from './event-lines.js';

/** What a load client has to know of one event of a chat completion's stream. */
export type Chunk =
  | { readonly kind: 'text' }
  | { readonly kind: 'usage'; readonly usage: Usage }
  | { readonly kind: 'error'; readonly message: string }
  | { readonly kind: 'done' }
  | { readonly kind: 'other' };

export interface Usage {
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
}

/**
 * Told by looking for a few keys instead of parsing thousands of chunks a second. A quote inside a JSON string is
 * escaped, so that what a model writes cannot look like a key.
 */
export function readChunk(data: string): Chunk {
  if (data === '[DONE]') return { kind: 'done' };
  if (/"(?:reasoning_)?content": *"[^"]/.test(data)) return { kind: 'text' };
  const outputTokens = numberAt(data, /"completion_tokens": *(\d+)/);
  if (outputTokens !== undefined) {
    const promptTokens = numberAt(data, /"prompt_tokens": *(\d+)/) ?? 0;
    const cachedTokens = numberAt(data, /"cached_tokens": *(\d+)/) ?? 0;
    return { kind: 'usage', usage: { promptTokens, outputTokens, cachedTokens } };
  }
  if (!data.includes('"choices"')) return { kind: 'error', message: readErrorMessage(readText(data)) };
  return { kind: 'other' };
}

/** The message of an error body of Headrace's, OpenAI's or FastAPI's shape, else the body itself. */
export function readErrorMessage(body: string): string {
  try {
    const { message, error, detail } = JSON.parse(body);
    for (const text of [message, error?.message, error, detail]) if (typeof text === 'string') return text;
  } catch {
    // Not JSON: a proxy's page, for one.
  }
  return body.trim().slice(0, 300);
}

function numberAt(data: string, pattern: RegExp): number | undefined {
  const match = pattern.exec(data);
  return match === null ? undefined : Number(match[1]);
}
