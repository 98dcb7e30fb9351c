import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rerankResponseSchema } from '../../src/contract/rerank.js';
import reference from '../fixtures/encoder/bert-cross-encoder/expected.json' with { type: 'json' };
import { writeJudgeFixture } from '../support/judge-fixture.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { writePublishedEncoder } from '../support/published-encoder.js';
import { makeTempFolder, type TempFolder } from '../support/temp-folder.js';
import { TestService } from './test-service.js';

const judge = 'a-judge';
const published = 'a-published-graph';

describe('rerankers that are not compiled encoders, over HTTP', () => {
  let folder: TempFolder;
  let database: TestDatabase;
  let service: TestService;
  beforeAll(async () => {
    folder = await makeTempFolder('rerankers');
    await mkdir(join(folder.path, judge));
    await writeJudgeFixture(join(folder.path, judge));
    await mkdir(join(folder.path, published));
    await writePublishedEncoder('bert-cross-encoder', join(folder.path, published));
    const served = { task: 'rerank', weights: 'float32', threads: 1 };
    const models = [
      { id: judge, ...served, instruction: 'Find it.', sources: [{ from: 'file', path: judge }] },
      { id: published, ...served, sources: [{ from: 'file', path: published }] },
    ];
    const modelsFile = join(folder.path, 'models.json');
    await writeFile(modelsFile, JSON.stringify({ models }));
    database = await createTestDatabase();
    service = await TestService.start(
      { databaseUrl: database.url, redisUrl: undefined },
      { workers: models.map(({ id }) => id), environment: { HEADRACE_MODELS: modelsFile } },
    );
    await service.ready();
  });
  afterAll(async () => {
    await service?.close();
    await database?.drop();
    await folder?.remove();
  });

  async function scores(fields: Record<string, unknown>): Promise<number[]> {
    const response = await service.post('/v1/rerank', fields);
    expect(response.status).toBe(200);
    const { results } = rerankResponseSchema.parse(await response.json());
    return results.toSorted((a, b) => a.index - b.index).map(({ relevance_score }) => relevance_score);
  }

  it('a causal model judges each document by itself', async () => {
    const documents = ['A mill wheel turns.', 'Bees dance.', 'A mill wheel turns.'];
    const [first, second, third] = await scores({ model: judge, query: 'What turns?', documents });
    expect(first).toBe(third);
    expect(first).not.toBe(second);
    expect(await scores({ model: judge, query: 'What turns?', documents: ['Bees dance.'] })).toEqual([
      second,
    ]);
    for (const score of [first!, second!]) {
      expect(score).toBeGreaterThan(0);
      expect(score).toBeLessThan(1);
    }
  });

  it('a published graph gives the scores of the reference', async () => {
    const { query, documents, relevance_scores } = reference;
    const given = await scores({ model: published, query, documents });
    for (const [index, score] of given.entries()) expect(score).toBeCloseTo(relevance_scores[index]!, 4);
    expect(given).toHaveLength(documents.length);
  });

  it('a query that leaves no room for a document is refused', async () => {
    const response = await service.post('/v1/rerank', {
      model: judge,
      query: 'word '.repeat(600),
      documents: ['text'],
    });
    expect(response.status).toBe(400);
  });
});
