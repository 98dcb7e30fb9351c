import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rerankResponseSchema } from '../../../src/contract/rerank.js';
import { errorBody } from '../../support/error-body.js';
import { rerankRequest, startTestService, type TestService } from '../support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

async function rerank(body: Record<string, unknown>, scores: number[]) {
  const answer = service.app.inject(rerankRequest(body));
  const run = await service.rerank.next();
  await run.start();
  await run.rank(scores);
  const response = await answer;
  expect(response.statusCode).toBe(200);
  return { job: run.job, headers: response.headers, body: rerankResponseSchema.parse(response.json()) };
}

describe('a ranking', () => {
  it('lists every document by falling score, ties in the order they were sent', async () => {
    const { body } = await rerank({ documents: ['a', 'b', 'c', 'd'] }, [0.2, 0.9, 0.2, 0.5]);
    expect(body.results).toEqual([
      { index: 1, relevance_score: 0.9 },
      { index: 3, relevance_score: 0.5 },
      { index: 0, relevance_score: 0.2 },
      { index: 2, relevance_score: 0.2 },
    ]);
  });

  it('carries its id, the tokens that were read, and the times as headers', async () => {
    const { job, body, headers } = await rerank({}, [0, 0, 0]);
    expect(job.id).toMatch(/^rerank-[0-9a-f]{32}$/);
    expect(body).toMatchObject({
      id: job.id,
      tokens: { total_tokens: 30 },
      meta: { tokens: { input_tokens: 30, output_tokens: 0 } },
    });
    expect(headers).toMatchObject({ 'x-headrace-queue-ms': '1.5', 'x-headrace-first-token-ms': '12.3' });
  });

  it.each([
    [1, 1],
    [2, 2],
    [99, 3],
    [null, 3],
  ])('with top_n %j has %i results', async (top_n, length) => {
    const { body } = await rerank({ top_n }, [0.1, 0.2, 0.3]);
    expect(body.results).toHaveLength(length);
  });

  it('contains the documents when they are asked for', async () => {
    const { body } = await rerank({ return_documents: true, top_n: 1 }, [0.1, 0.3, 0.2]);
    expect(body.results).toEqual([{ index: 1, relevance_score: 0.3, document: 'b' }]);
  });
});

describe('a job', () => {
  it('has the defaults of the contract', async () => {
    const { job } = await rerank({}, [0, 0, 0]);
    expect(job).toMatchObject({ kind: 'rerank', query: 'q', maxChunksPerDoc: 1024, overlapTokens: 0 });
  });

  it('carries the rules of chunking', async () => {
    const { job } = await rerank({ max_chunks_per_doc: 3, overlap_tokens: 80 }, [0, 0, 0]);
    expect(job).toMatchObject({ maxChunksPerDoc: 3, overlapTokens: 80 });
  });
});

describe('a request that is wrong', () => {
  const tooMany = Array.from({ length: 10_001 }, () => 'a');

  it.each([
    [
      'model: one that there is not',
      { model: 'nobody' },
      20012,
      'Model does not exist. Please check it carefully.',
    ],
    [
      'model: a chat model',
      { model: 'tiny-chat' },
      20015,
      'model: must be a rerank model, and this is a chat model',
    ],
    ['model: none', { model: undefined }, 20015, 'model: is required'],
    ['query: none', { query: undefined }, 20015, 'query: is required'],
    ['query: nothing', { query: '' }, 20015, 'query: must not be empty'],
    ['query: a list', { query: ['q'] }, 20015, 'query: must be a string, not an array'],
    ['documents: none', { documents: undefined }, 20015, 'documents: is required'],
    ['documents: nothing', { documents: [] }, 20015, 'documents: must not be empty'],
    ['documents: 10,001', { documents: tooMany }, 20015, 'documents: must have at most 10000 elements'],
    ['documents: a string', { documents: 'a' }, 20015, 'documents: must be an array, not a string'],
    [
      'documents: an object',
      { documents: ['a', 'b', 'c', { text: 'd' }] },
      20015,
      'documents[3]: only strings are supported',
    ],
    ['documents: null', { documents: [null] }, 20015, 'documents[0]: only strings are supported'],
    ['top_n: 0', { top_n: 0 }, 20015, 'top_n: must be at least 1'],
    ['top_n: a fraction', { top_n: 1.5 }, 20015, 'top_n: must be an integer, not 1.5'],
    [
      'return_documents: a string',
      { return_documents: 'yes' },
      20015,
      'return_documents: must be true or false, not a string',
    ],
    ['max_chunks_per_doc: 0', { max_chunks_per_doc: 0 }, 20015, 'max_chunks_per_doc: must be at least 1'],
    ['overlap_tokens: 81', { overlap_tokens: 81 }, 20015, 'overlap_tokens: must be at most 80'],
    ['overlap_tokens: below 0', { overlap_tokens: -1 }, 20015, 'overlap_tokens: must be at least 0'],
  ] as const)('is 400 with its place: %s', async (_what, fields, code, message) => {
    const response = await service.app.inject(rerankRequest(fields));
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(errorBody(code, message));
  });
});

it('is also answered under the path without the version', async () => {
  const answer = service.app.inject({ ...rerankRequest(), url: '/rerank' });
  const run = await service.rerank.next();
  await run.start();
  await run.rank([0, 0, 0]);
  expect((await answer).statusCode).toBe(200);
});
