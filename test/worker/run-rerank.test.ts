import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Frame } from '../../src/contract/frame.js';
import type { RerankJob } from '../../src/contract/job.js';
import type { EncodeRequest } from '../../src/engine/request.js';
import type { EncoderManifest } from '../../src/models/manifest.js';
import { EngineRuns } from '../../src/worker/engine-runs.js';
import { HeldRequest, RequestEnded } from '../../src/worker/held-request.js';
import type { Reply } from '../../src/worker/publish.js';
import { RerankRunner } from '../../src/worker/run-rerank.js';
import { FakeEngine } from './support/fake-engine.js';
import { type FixtureModel, fixtureTokenizer, readFixture } from './support/fixture-model.js';
import {
  bertTokenizer,
  encoderManifest,
  openWorkbench,
  rerankJob,
  type Workbench,
} from './support/workbench.js';

const xlmTokenizer = fixtureTokenizer('encoder/xlm-roberta-cross-encoder');
const biTokenizer = fixtureTokenizer('encoder/bert-bi-encoder');
const xlmManifest: EncoderManifest = {
  ...encoderManifest,
  architecture: 'xlm-roberta',
  paddingToken: 1,
  tokenTypes: false,
  firstPosition: 2,
};
const biManifest: EncoderManifest = { ...encoderManifest, scoring: 'bi-encoder', dimension: 2 };

const expectedSchema = z.object({
  query: z.string(),
  documents: z.array(z.string()),
  input_ids: z.array(z.array(z.int())).optional(),
  logits: z.array(z.number()).optional(),
  relevance_scores: z.array(z.number()).optional(),
  cosine: z.array(z.number()).optional(),
  embeddings: z.array(z.object({ text: z.string(), embedding: z.array(z.number()) })).optional(),
});
const expectedOf = (model: FixtureModel) =>
  expectedSchema.parse(JSON.parse(readFixture(model, 'expected.json')));

let bench: Workbench | undefined;
afterEach(() => bench?.close());

async function open(
  manifest: EncoderManifest = encoderManifest,
  tokenizer = bertTokenizer,
  contextLength?: number,
) {
  bench = await openWorkbench({ manifest, tokenizer, contextLength });
  return bench;
}

const scoresOf = (frame: Frame) => (frame.type === 'ranked' ? frame.scores : frame);
const tokensOf = ({ sequences }: EncodeRequest) => sequences.map(({ tokens }) => [...tokens]);
const lengths = (request: EncodeRequest) => request.sequences.map(({ tokens }) => tokens.length);

describe('cross-encoder', () => {
  test.each([
    ['encoder/bert-cross-encoder', encoderManifest, bertTokenizer],
    ['encoder/xlm-roberta-cross-encoder', xlmManifest, xlmTokenizer],
  ] as const)('pairs and scores are those of the reference: %s', async (model, manifest, tokenizer) => {
    const { query, documents, input_ids, logits, relevance_scores } = expectedOf(model);
    const { engine, log, enqueue } = await open(manifest, tokenizer);
    await enqueue(rerankJob({ query, documents }));
    const request = await engine.nextEncode();
    if (input_ids !== undefined) expect(tokensOf(request)).toEqual(input_ids);
    engine.answer(request, (index) => [logits![index]!]);
    const scores = scoresOf(await log.ending('request-1')) as number[];
    for (const [index, score] of scores.entries()) expect(score).toBeCloseTo(relevance_scores![index]!, 5);
  });

  test('types tell the query from the document where the model takes them', async () => {
    const { engine, enqueue } = await open();
    await enqueue(rerankJob({ query: 'one', documents: ['two'] }));
    const { sequences } = await engine.nextEncode();
    const [query, document] = [await bertTokenizer.encode('one'), await bertTokenizer.encode('two')];
    expect([...sequences[0]!.types!]).toEqual([
      ...new Array(query.length + 2).fill(0),
      ...new Array(document.length + 1).fill(1),
    ]);
  });

  test('no types are sent where the model takes none', async () => {
    const { engine, enqueue } = await open(xlmManifest, xlmTokenizer);
    await enqueue(rerankJob());
    expect((await engine.nextEncode()).sequences[0]!.types).toBeUndefined();
  });

  test('control tokens typed into a document are text', async () => {
    const { engine, enqueue } = await open();
    await enqueue(rerankJob({ documents: ['[SEP] [CLS] [SEP]'] }));
    const sep = bertTokenizer.specialToken('[SEP]')!;
    expect(tokensOf(await engine.nextEncode())[0]!.filter((token) => token === sep)).toHaveLength(2);
  });

  test('a long document is cut into chunks beside the query, and its best chunk counts', async () => {
    const { engine, log, enqueue } = await open(encoderManifest, bertTokenizer, 32);
    const query = await bertTokenizer.encode('where');
    const document = 'mill race wheel stone '.repeat(20);
    const tokens = [...(await bertTokenizer.encode(document))];
    await enqueue(rerankJob({ query: 'where', documents: ['short', document], overlapTokens: 5 }));
    const request = await engine.nextEncode();
    const size = 32 - 3 - query.length;
    const chunk = (sequence: number[]) => sequence.slice(query.length + 2, -1);
    const sequences = tokensOf(request).slice(1);
    expect(sequences.length).toBeGreaterThan(2);
    for (const [index, sequence] of sequences.entries()) {
      const start = index * (size - 5);
      expect(chunk(sequence)).toEqual(tokens.slice(start, start + size));
    }
    expect(chunk(sequences.at(-1)!).at(-1)).toBe(tokens.at(-1));
    engine.answer(request, (index) => [index === 2 ? 3 : -3]);
    const [short, long] = scoresOf(await log.ending('request-1')) as number[];
    expect(short).toBeCloseTo(1 / (1 + Math.exp(3)), 6);
    expect(long).toBeCloseTo(1 / (1 + Math.exp(-3)), 6);
  });

  test('only so many chunks of a document are scored', async () => {
    const { engine, enqueue } = await open(encoderManifest, bertTokenizer, 32);
    await enqueue(rerankJob({ query: 'where', documents: ['mill race '.repeat(50)], maxChunksPerDoc: 2 }));
    expect((await engine.nextEncode()).sequences).toHaveLength(2);
  });

  test('an empty document is scored too', async () => {
    const { engine, log, enqueue } = await open();
    await enqueue(rerankJob({ query: 'one', documents: ['', 'two'] }));
    const request = await engine.nextEncode();
    expect(lengths(request)[0]).toBe((await bertTokenizer.encode('one')).length + 3);
    engine.answer(request, () => [0]);
    expect(scoresOf(await log.ending('request-1'))).toEqual([0.5, 0.5]);
  });

  test('every token that the model ran counts', async () => {
    const { engine, log, enqueue } = await open();
    await enqueue(rerankJob());
    const request = await engine.nextEncode();
    engine.answer(request, () => [0]);
    const promptTokens = lengths(request).reduce((sum, length) => sum + length);
    expect(await log.ending('request-1')).toMatchObject({
      spent: { promptTokens, completionTokens: 0, cachedTokens: 0 },
      timings: { firstTokenMs: expect.any(Number) },
    });
  });

  test('a query that leaves no room for a document is refused', async () => {
    const { log, enqueue } = await open(encoderManifest, bertTokenizer, 16);
    const query = 'how many people live there '.repeat(4);
    await enqueue(rerankJob({ query }));
    expect(await log.ending('request-1')).toMatchObject({
      type: 'failed',
      error: 'invalidParameter',
      message: 'query: leaves no room for a document in the context of 16 tokens',
    });
  });

  test('an overlap as long as a chunk is refused where a document needs several', async () => {
    const { engine, log, enqueue } = await open(encoderManifest, bertTokenizer, 32);
    await enqueue(rerankJob({ id: 'a', query: 'where', documents: ['mill '.repeat(60)], overlapTokens: 80 }));
    expect(await log.ending('a')).toMatchObject({
      type: 'failed',
      error: 'invalidParameter',
      message: expect.stringMatching(/^overlap_tokens: chunks .* cannot overlap by 80$/),
    });
    await enqueue(rerankJob({ id: 'b', query: 'where', documents: ['mill'], overlapTokens: 80 }));
    expect((await engine.nextEncode()).sequences).toHaveLength(1);
  });

  test('a score that is not a number fails the request', async () => {
    const { engine, log, enqueue } = await open();
    await enqueue(rerankJob());
    engine.answer(await engine.nextEncode(), () => [Number.NaN]);
    expect(await log.ending('request-1')).toMatchObject({ type: 'failed', error: 'internal' });
  });
});

describe('bi-encoder', () => {
  test('scores are the reference’s cosines, moved to 0..1', async () => {
    const { query, documents, cosine, embeddings } = expectedOf('encoder/bert-bi-encoder');
    const embeddingOf = (text: string) => embeddings!.find((each) => each.text === text)?.embedding;
    const known = documents.filter((document) => embeddingOf(document) !== undefined);
    expect(known.length).toBeGreaterThan(0);
    const dimension = embeddings![0]!.embedding.length;
    const { engine, log, enqueue } = await open({ ...biManifest, dimension }, biTokenizer);
    await enqueue(rerankJob({ query, documents: known }));
    const texts = [query, ...known];
    engine.answer(await engine.nextEncode(), (index) => embeddingOf(texts[index]!)!);
    const scores = scoresOf(await log.ending('request-1')) as number[];
    for (const [index, document] of known.entries()) {
      expect(scores[index]).toBeCloseTo((cosine![documents.indexOf(document)]! + 1) / 2, 4);
    }
  });

  test('query and chunks are embedded each by itself, the query once and with the first of them', async () => {
    const { engine, log, enqueue } = await open(biManifest, biTokenizer, 32);
    await enqueue(rerankJob({ query: 'where', documents: ['mill '.repeat(40), 'race'] }));
    const request = await engine.nextEncode();
    expect(tokensOf(request)[0]).toEqual([2, ...(await biTokenizer.encode('where')), 3]);
    expect(lengths(request)[1]).toBe(32);
    expect(tokensOf(request).at(-1)).toEqual([2, ...(await biTokenizer.encode('race')), 3]);
    engine.answer(
      request,
      (index) =>
        [
          [1, 0],
          [0, -1],
          [2, 0],
        ][index] ?? [0, 3],
    );
    expect(scoresOf(await log.ending('request-1'))).toEqual([1, 0.5]);
  });

  test('a query is embedded beside later batches no more, and they are compared with it', async () => {
    const documents = Array.from({ length: 30 }, (_, index) => `document ${index}`);
    const { engine, done, sent } = start({ manifest: biManifest, documents, batchTokens: 60 });
    let seen = -1;
    while (seen < documents.length) {
      const request = await engine.nextEncode();
      const first = seen;
      seen += request.sequences.length;
      engine.answer(request, (index) => (first + index === -1 ? [1, 0] : [1, first + index]));
    }
    await done;
    expect(sent[0]).toMatchObject({
      scores: documents.map((_, index) => expect.closeTo((1 / Math.hypot(1, index) + 1) / 2, 5)),
    });
  });

  test('a query that fills the context is served, and one token more is refused', async () => {
    const { engine, log, enqueue } = await open(biManifest, biTokenizer, 16);
    await enqueue(rerankJob({ id: 'a', query: '.'.repeat(14), documents: ['race'] }));
    expect(lengths(await engine.nextEncode())[0]).toBe(16);
    await enqueue(rerankJob({ id: 'b', query: '.'.repeat(15), documents: ['race'] }));
    expect(await log.ending('b')).toMatchObject({ type: 'failed', error: 'invalidParameter' });
  });

  test('a query longer than the context is refused', async () => {
    const { log, enqueue } = await open(biManifest, biTokenizer, 16);
    await enqueue(rerankJob({ query: 'how many people live there '.repeat(4) }));
    expect(await log.ending('request-1')).toMatchObject({
      type: 'failed',
      error: 'invalidParameter',
      message: expect.stringMatching(/^query: /),
    });
  });
});

function start({
  manifest = encoderManifest,
  documents,
  query = 'one',
  ...options
}: {
  manifest?: EncoderManifest;
  documents: string[];
  query?: string;
  batchTokens?: number;
  callDocuments?: number;
  callCharacters?: number;
}) {
  const engine = new FakeEngine(manifest);
  const runs = new EngineRuns(engine);
  const runner = new RerankRunner({
    manifest,
    tokenizer: bertTokenizer,
    runs,
    contextLength: 128,
    ...options,
  });
  const sent: Parameters<Reply['send']>[0][] = [];
  const reply = { send: (body) => void sent.push(body), delivered: async () => {} } as Reply;
  const request = new HeldRequest({ job: rerankJob({ query, documents }), reply, clock: Date });
  const done = runner.run(request.job as RerankJob, request).finally(() => request.release());
  return { engine, runs, request, done, sent };
}

describe('many documents', () => {
  const documents = Array.from({ length: 50 }, (_, index) => `document ${index}`);

  test('go through the engine in batches, one at a time, in order', async () => {
    const { engine, runs, done, sent } = start({ documents, batchTokens: 100, callDocuments: 8 });
    let seen = 0;
    while (seen < documents.length) {
      const request = await engine.nextEncode();
      expect(runs.size).toBe(1);
      const first = seen;
      seen += request.sequences.length;
      engine.answer(request, (index) => [(first + index) / 100]);
    }
    await done;
    expect(sent[0]).toMatchObject({
      type: 'ranked',
      scores: documents.map((_, index) => expect.closeTo(1 / (1 + Math.exp(-index / 100)), 5)),
    });
  });

  test('a request that ends stops between batches and leaves nothing in the engine', async () => {
    const { engine, runs, request, done } = start({ documents, batchTokens: 100, callDocuments: 8 });
    const first = await engine.nextEncode();
    request.end({ type: 'cancelled' });
    await expect(done).rejects.toThrow(RequestEnded);
    expect(engine.cancelled.map(({ id }) => id)).toContain(first.id);
    expect(runs.size).toBe(0);
  });

  test('a batch that fails ends the request', async () => {
    const { engine, done } = start({ documents, batchTokens: 100, callDocuments: 8 });
    const { id } = await engine.nextEncode();
    engine.step([{ type: 'failed', id, reason: 'the model failed to run' }]);
    await expect(done).rejects.toThrow('the model failed to run');
  });

  test('equal documents are run once and score the same', async () => {
    const repeated = ['mill', 'race', 'mill', '', 'race', ''];
    const { engine, done, sent } = start({ documents: repeated });
    const request = await engine.nextEncode();
    expect(request.sequences).toHaveLength(3);
    engine.answer(request, (index) => [index]);
    await done;
    const [mill, race, empty] = [0, 1, 2].map((logit) => expect.closeTo(1 / (1 + Math.exp(-logit)), 6));
    expect(sent[0]).toMatchObject({ scores: [mill, race, mill, empty, race, empty] });
  });

  test('a document of a million words is read no further than its chunks reach', async () => {
    const documents = ['mill race wheel stone '.repeat(250_000)];
    const { engine, done, sent } = start({ documents, callCharacters: 4_000, batchTokens: 1_000_000 });
    const request = await engine.nextEncode();
    expect(request.sequences).toHaveLength(1024);
    expect(new Set(lengths(request))).toEqual(new Set([128]));
    engine.answer(request, (index) => [index === 1023 ? 2 : -2]);
    await done;
    expect(sent[0]).toMatchObject({ scores: [expect.closeTo(1 / (1 + Math.exp(-2)), 6)] });
  });

  test('a query of a million words is refused without being read to its end', async () => {
    const query = 'mill race wheel stone '.repeat(250_000);
    const { done } = start({ query, documents: ['mill'], callCharacters: 4_000 });
    await expect(done).rejects.toThrow(/^query: leaves no room/);
  });
});
