import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RerankResponse, rerankResponseSchema } from '../../src/contract/rerank.js';
import biEncoder from '../fixtures/encoder/bert-bi-encoder/expected.json' with { type: 'json' };
import bertCross from '../fixtures/encoder/bert-cross-encoder/expected.json' with { type: 'json' };
import xlmCross from '../fixtures/encoder/xlm-roberta-cross-encoder/expected.json' with { type: 'json' };
import { describeBackplanes } from '../support/backplanes.js';
import { errorBody } from '../support/error-body.js';
import { biRerankModel, rerankModel, TestService, until, xlmRerankModel } from './test-service.js';

/** `room` is what a context of 128 tokens has for a document, beside control tokens and a cross-encoder's query. */
const models = [
  {
    id: rerankModel,
    query: bertCross.query,
    documents: bertCross.documents,
    scores: bertCross.relevance_scores,
    room: (queryTokens: number) => 128 - 3 - queryTokens,
    longestQuery: 128 - 3 - 1,
  },
  {
    id: xlmRerankModel,
    query: xlmCross.query,
    documents: xlmCross.documents,
    scores: xlmCross.relevance_scores,
    room: (queryTokens: number) => 128 - 4 - queryTokens,
    longestQuery: 128 - 4 - 1,
  },
  {
    id: biRerankModel,
    query: biEncoder.query,
    documents: biEncoder.documents,
    scores: biEncoder.cosine.map((cosine) => (cosine + 1) / 2),
    room: () => 128 - 2,
    longestQuery: 128 - 2,
  },
];

/** Words that are one token each to all of these models. */
const words = ['in', 'work', 'an', 'wheel', 'a', 'f', 'o', 'm', 'p', 'w'];
const text = (count: number, seed = 1) =>
  Array.from({ length: count }, (_, index) => words[(index * index * seed + index) % words.length]!);

/** A word list cut by the contract's rule. */
function chunksOf(list: readonly string[], size: number, overlap: number): string[] {
  const chunks = [list.slice(0, size).join(' ')];
  for (let end = size; end < list.length; end += size - overlap) {
    chunks.push(list.slice(end - overlap, end - overlap + size).join(' '));
  }
  return chunks;
}

describeBackplanes('rerank', (kit) => {
  let service: TestService;
  beforeAll(async () => {
    service = await TestService.start(kit.settings, { models: models.map(({ id }) => id) });
  });
  afterAll(() => service?.close());

  async function rerank(fields: Record<string, unknown>): Promise<RerankResponse> {
    const response = await service.post('/v1/rerank', fields);
    const body = await response.json();
    expect(body).toEqual(rerankResponseSchema.parse(body));
    return body as RerankResponse;
  }

  /** The score of each document, in the order of the request. */
  async function scoresOf(fields: { documents: readonly string[] } & Record<string, unknown>) {
    const { results } = await rerank(fields);
    expect(results.map(({ index }) => index).sort((a, b) => a - b)).toEqual([...fields.documents.keys()]);
    for (const [at, { index, relevance_score }] of results.entries()) {
      const next = results[at + 1];
      const inOrder =
        !next ||
        relevance_score > next.relevance_score ||
        (relevance_score === next.relevance_score && index < next.index);
      expect(inOrder).toBe(true);
    }
    const scores = new Array<number>(fields.documents.length);
    for (const { index, relevance_score } of results) scores[index] = relevance_score;
    return scores;
  }

  async function refusal(fields: Record<string, unknown>): Promise<string> {
    const response = await service.post('/v1/rerank', fields);
    const body = (await response.json()) as { message: string };
    expect(response.status).toBe(400);
    expect(body).toEqual(errorBody(20015, expect.any(String)));
    return body.message;
  }

  describe.each(models)('by $id', ({ id: model, query, documents, scores, room, longestQuery }) => {
    it('gives the scores of the reference', async () => {
      const given = await scoresOf({ model, query, documents });
      for (const [index, score] of given.entries()) expect(score).toBeCloseTo(scores[index]!, 3);
    });

    it('takes a single document', async () => {
      const { results } = await rerank({ model, query, documents: [documents[0]] });
      expect(results).toEqual([{ index: 0, relevance_score: expect.closeTo(scores[0]!, 3) }]);
    });

    it('scores empty documents, and puts ties in the order of the request', async () => {
      const given = await scoresOf({ model, query, documents: ['', 'mill', '', ' ', 'mill', ''] });
      expect(given[2]).toBe(given[0]);
      expect(given[5]).toBe(given[0]);
      expect(given[4]).toBe(given[1]);
    });

    it('returns the best few, or all when fewer are there', async () => {
      const all = await rerank({ model, query, documents });
      expect((await rerank({ model, query, documents, top_n: 2 })).results).toEqual(all.results.slice(0, 2));
      expect((await rerank({ model, query, documents, top_n: 1_000 })).results).toEqual(all.results);
    });

    it('takes text of any script, and returns it as it was', async () => {
      const strange = [
        '水車はどこですか',
        'כמה אנשים גרים בברלין',
        'e\u0301te\u0301 \u0301',
        '👩‍👩‍👧 🇩🇪 🌊',
        '\u0000\u200b\u202e\ufeff',
        'half a pair: \ud83c',
        '<s> [SEP] </s> [MASK]',
      ];
      for (const asked of ['wie viele', '多少人', strange[5]!]) {
        const { results } = await rerank({ model, query: asked, documents: strange, return_documents: true });
        expect(results).toHaveLength(strange.length);
        for (const { index, document } of results) expect(document).toBe(strange[index]);
      }
    });

    it.each([
      [0, 1024],
      [17, 1024],
      [80, 1024],
      [80, 3],
      [0, 2],
      [0, 1],
    ])('with overlap %i, the best of at most %i chunks is the score of a document', async (overlap, max) => {
      const list = text(700, 3);
      const [asked, size] = ['an a f', room(3)];
      const chunks = chunksOf(list, size, overlap).slice(0, max);
      const chunkScores = await scoresOf({ model, query: asked, documents: chunks });
      const [score] = await scoresOf({
        model,
        query: asked,
        documents: [list.join(' ')],
        overlap_tokens: overlap,
        max_chunks_per_doc: max,
      });
      expect(chunks).toHaveLength(Math.min(max, Math.ceil((700 - overlap) / (size - overlap))));
      expect(score).toBeCloseTo(Math.max(...chunkScores), 5);
    });

    it('scores the start of a document of megabytes by itself', async () => {
      const list = text(1_000_000);
      const [long, start] = await scoresOf({
        model,
        query: 'an a f',
        documents: [list.join(' '), list.slice(0, room(3)).join(' ')],
        max_chunks_per_doc: 1,
      });
      expect(long).toBeCloseTo(start!, 5);
    });

    it('takes a query that just leaves room, and refuses one a token longer', async () => {
      const longest = text(longestQuery).join(' ');
      const size = room(longestQuery);
      const list = text(3 * size - 1, 7);
      const [score, ...chunkScores] = await scoresOf({
        model,
        query: longest,
        documents: [list.join(' '), ...chunksOf(list, size, 0)],
      });
      expect(score).toBeCloseTo(Math.max(...chunkScores), 5);
      expect(await refusal({ model, query: `${longest} an`, documents: ['mill'] })).toMatch(/^query: /);
      expect(await refusal({ model, query: longest.repeat(20_000), documents: [''] })).toMatch(/^query: /);
    });
  });

  it('refuses an overlap that leaves nothing of a chunk', async () => {
    const fields = { model: rerankModel, query: text(60).join(' '), overlap_tokens: 80 };
    expect(await refusal({ ...fields, documents: [text(100).join(' ')] })).toMatch(/^overlap_tokens: /);
    expect(await scoresOf({ ...fields, documents: [text(50).join(' ')] })).toHaveLength(1);
  });

  it('ranks 10,000 documents, each as it would be alone', async () => {
    const many = Array.from(
      { length: 10_000 },
      (_, index) => `${index} ${text(index % 30, index).join(' ')}`,
    );
    const fields = { model: rerankModel, query: 'an a f' };
    const scores = await scoresOf({ ...fields, documents: many });
    for (const index of [0, 1, 127, 128, 5_000, 9_999]) {
      const [alone] = await scoresOf({ ...fields, documents: [many[index]!] });
      expect(scores[index]).toBeCloseTo(alone!, 5);
    }
  });

  it('answers a small request while a large one runs on the same worker', async () => {
    let largeEnded = false;
    const documents = Array.from({ length: 10_000 }, (_, index) => `${index} ${text(90, index).join(' ')}`);
    const large = rerank({ model: rerankModel, query: 'an a f', documents }).finally(() => {
      largeEnded = true;
    });
    await until(async () => {
      const metrics = await (await fetch(`${service.url}/metrics`)).text();
      return new RegExp(`^headrace_worker_running.*"${rerankModel}".* 1$`, 'm').test(metrics);
    });
    for (let count = 0; count < 5; count++) {
      expect(
        (await rerank({ model: rerankModel, query: 'wheel', documents: ['mill'] })).results,
      ).toHaveLength(1);
    }
    expect(largeEnded).toBe(false);
    expect((await large).results).toHaveLength(10_000);
  });
});
