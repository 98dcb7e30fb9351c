import { readChunk, type Usage } from './chunk.js';
import { EventLines } from './event-lines.js';
import type { Exchange } from './exchange.js';
import type { HttpClient } from './http.js';

/**
 * Has a chat completion streamed and notes when its text arrives. Tokens are those of the `usage` that the server
 * reports, else its pieces of text.
 * @throws Error when the answer is not a whole one.
 */
export async function exchangeChat(
  client: HttpClient,
  { body, signal }: { body: string; signal: AbortSignal },
): Promise<Exchange> {
  const sent = performance.now();
  const response = await client.request('/v1/chat/completions', { body, signal });
  const lines = new EventLines();
  const gapsMs: number[] = [];
  let firstTokenMs: number | undefined;
  let last = 0;
  let pieces = 0;
  let usage: Usage | undefined;
  let done = false;
  for await (const bytes of response) {
    const now = performance.now();
    for (const data of lines.push(bytes as Buffer)) {
      const chunk = readChunk(data);
      if (chunk.kind === 'text') {
        if (firstTokenMs === undefined) firstTokenMs = now - sent;
        else gapsMs.push(now - last);
        last = now;
        pieces++;
      } else if (chunk.kind === 'usage') usage = chunk.usage;
      else if (chunk.kind === 'done') done = true;
      else if (chunk.kind === 'error') throw new Error(`the stream broke off: ${chunk.message}`);
    }
  }
  if (!done) throw new Error('the stream ended before its end');
  return {
    latencyMs: performance.now() - sent,
    firstTokenMs,
    gapsMs,
    promptTokens: usage?.promptTokens ?? 0,
    cachedTokens: usage?.cachedTokens ?? 0,
    outputTokens: usage?.outputTokens ?? pieces,
    documents: 0,
  };
}
