import type { Exchange } from './exchange.js';
import { type HttpClient, readBody } from './http.js';

/**
 * Has documents ranked.
 * @throws Error when the answer does not rank all of them.
 */
export async function exchangeRerank(
  client: HttpClient,
  { body, documents, signal }: { body: string; documents: number; signal: AbortSignal },
): Promise<Exchange> {
  const sent = performance.now();
  const response = await client.request('/v1/rerank', { body, signal });
  const { results, tokens, usage } = JSON.parse(await readBody(response));
  if (results?.length !== documents) {
    throw new Error(`${results?.length ?? 'no'} results came back for ${documents} documents`);
  }
  return {
    latencyMs: performance.now() - sent,
    gapsMs: [],
    promptTokens: tokens?.total_tokens ?? usage?.total_tokens ?? 0,
    cachedTokens: 0,
    outputTokens: 0,
    documents,
  };
}
