import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RerankOptions, rerank } from '../../../src/cli/client/rerank.js';
import { ServiceClient } from '../../../src/cli/client/service-client.js';
import { formatTable } from '../../../src/cli/table.js';
import { json, LocalService, models, TestTerminal } from './local-service.js';

const route = 'POST /v1/rerank';
const answer = {
  id: 'r1',
  results: [
    { index: 1, relevance_score: 0.98765 },
    { index: 0, relevance_score: 0.1 },
  ],
  tokens: { total_tokens: 12 },
  meta: { tokens: { input_tokens: 12, output_tokens: 0 } },
};

let folder: string;
let file: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headrace-rerank-'));
  file = join(folder, 'passages.txt');
  await writeFile(file, 'Bread is baked.\r\n\r\nLeonardo painted it.\r\n');
});

afterAll(() => rm(folder, { recursive: true }));

async function run(
  service: { url: string },
  options: Partial<RerankOptions> = {},
  terminal = new TestTerminal(),
): Promise<string> {
  const client = new ServiceClient({ url: service.url, key: 'sk-secret', keyOrigin: 'HEADRACE_KEY' });
  const plain = { query: 'Who?', documents: file, model: 'm', returnDocuments: false, json: false };
  const { signal } = new AbortController();
  await rerank({ ...plain, ...options }, { client, terminal, formatTable, signal });
  return terminal.output;
}

describe('headrace rerank', () => {
  it('prints the lines of a file, best first, with the numbers they have there', async () => {
    await using service = await LocalService.start({ [route]: json(answer) });

    expect(await run(service)).toBe(
      [
        'rank  score   line  document',
        '1     0.9877  3     Leonardo painted it.',
        '2     0.1000  1     Bread is baked.',
        '',
      ].join('\n'),
    );
    expect(service.received[0]!.body).toEqual({
      model: 'm',
      query: 'Who?',
      documents: ['Bread is baked.', 'Leonardo painted it.'],
      return_documents: false,
    });
  });

  it("prints the service's answer as JSON, counting the file's lines from 0", async () => {
    await using service = await LocalService.start({ [route]: json(answer) });

    expect(JSON.parse(await run(service, { json: true }))).toEqual({
      ...answer,
      results: [
        { index: 2, relevance_score: 0.98765 },
        { index: 0, relevance_score: 0.1 },
      ],
    });
  });

  it('sends how many results and whether documents are wanted', async () => {
    await using service = await LocalService.start({ [route]: json(answer) });

    await run(service, { topN: 2, returnDocuments: true });

    expect(service.received[0]!.body).toMatchObject({ top_n: 2, return_documents: true });
  });

  it('asks the first reranker when none is named', async () => {
    await using service = await LocalService.start({
      'GET /v1/models?type=text&sub_type=reranker': models('first', 'second'),
      [route]: json(answer),
    });

    await run(service, { model: undefined });

    expect(service.received[1]!.body).toMatchObject({ model: 'first' });
  });

  it('reads documents from standard input for -', async () => {
    await using service = await LocalService.start({ [route]: json(answer) });

    await run(service, { documents: '-' }, new TestTerminal({ input: 'one\ntwo' }));

    expect(service.received[0]!.body).toMatchObject({ documents: ['one', 'two'] });
  });

  it('cuts documents to the width of a terminal', async () => {
    await using service = await LocalService.start({ [route]: json(answer) });
    const terminal = new TestTerminal({
      input: 'two\n'.padStart(60, 'x').repeat(2),
      isTTY: true,
      columns: 60,
    });

    const [, first] = (await run(service, { documents: '-' }, terminal)).split('\n');

    expect(first!.length).toBeLessThanOrEqual(60);
    expect(first!.endsWith('xx…')).toBe(true);
  });

  it('says that a file is not there', async () => {
    await expect(run({ url: 'http://127.0.0.1:9' }, { documents: '/nowhere/x.txt' })).rejects.toThrow(
      'The documents in /nowhere/x.txt cannot be read: there is no such file.',
    );
  });

  it('says that there are no documents', async () => {
    await expect(
      run({ url: 'http://127.0.0.1:9' }, { documents: '-' }, new TestTerminal({ input: ' \n\n' })),
    ).rejects.toThrow('There are no documents');
  });
});
