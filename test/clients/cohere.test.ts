import { CohereClient, CohereClientV2, CohereError } from 'cohere-ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rerankModel as model } from '../end-to-end/test-service.js';
import expected from '../fixtures/encoder/bert-cross-encoder/expected.json' with { type: 'json' };
import { type ClientService, startClientService } from './client-service.js';

const { query, documents, relevance_scores: scores } = expected;
/** Indices of the documents, best first. */
const ranking = [...documents.keys()].sort((a, b) => scores[b]! - scores[a]!);

let service: ClientService;
beforeAll(async () => {
  service = await startClientService({ models: [model] });
});
afterAll(() => service?.close());

describe.each([
  ['of version 1', CohereClient],
  ['of version 2', CohereClientV2],
])("Cohere's client %s", (_, Client) => {
  const connect = (token: string) => new Client({ token, environment: service.url, maxRetries: 0 });

  it('reranks', async () => {
    const { id, results, meta } = await connect(service.key).rerank({ model, query, documents });
    expect(id).toMatch(/^rerank-/);
    expect(results.map(({ index }) => index)).toEqual(ranking);
    for (const { index, relevanceScore } of results) expect(relevanceScore).toBeCloseTo(scores[index]!, 3);
    expect(meta!.tokens!.inputTokens).toBeGreaterThan(0);
    expect(meta!.tokens!.outputTokens).toBe(0);
  });

  it('gets the best few', async () => {
    const { results } = await connect(service.key).rerank({ model, query, documents, topN: 2 });
    expect(results.map(({ index }) => index)).toEqual(ranking.slice(0, 2));
  });

  it('sees what was wrong with a request, and with a key', async () => {
    const refused = (token: string, asked: string) =>
      connect(token)
        .rerank({ model, query: asked, documents })
        .catch((error: unknown) => error);
    const badRequest = (await refused(service.key, '')) as CohereError;
    expect(badRequest).toBeInstanceOf(CohereError);
    expect(badRequest).toMatchObject({
      statusCode: 400,
      body: { code: 20015, message: expect.stringMatching(/^query: /) },
    });
    expect(await refused('sk-wrong', query)).toMatchObject({ statusCode: 401, body: { code: 20001 } });
  });
});
