import type { FastifyReply } from 'fastify';
import type { RerankRequest, RerankResponse } from '../contract/rerank.js';
import type { Reply } from './reply.js';
import { setTimingHeaders } from './timing-headers.js';

/** The documents with their scores, best first, ties in the order they were sent. */
export async function gatherRanking(
  reply: Reply,
  { request, response }: { request: RerankRequest; response: FastifyReply },
): Promise<RerankResponse> {
  for await (const frames of reply) {
    const ranked = frames.at(-1)!;
    if (ranked.type !== 'ranked') continue;
    setTimingHeaders(response, ranked.timings);
    const { promptTokens, completionTokens } = ranked.spent;
    return {
      id: reply.id,
      results: rank(request, ranked.scores),
      tokens: { total_tokens: promptTokens + completionTokens },
      meta: { tokens: { input_tokens: promptTokens, output_tokens: completionTokens } },
    };
  }
  throw new Error('A rerank request was answered without scores. This is a bug.');
}

function rank(request: RerankRequest, scores: readonly number[]): RerankResponse['results'] {
  const { documents, top_n, return_documents } = request;
  if (scores.length !== documents.length) {
    throw new Error(`${scores.length} scores for ${documents.length} documents. This is a bug.`);
  }
  return scores
    .map((relevance_score, index) => ({ index, relevance_score }))
    .sort((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, top_n ?? undefined)
    .map((result) => (return_documents ? { ...result, document: documents[result.index]! } : result));
}
