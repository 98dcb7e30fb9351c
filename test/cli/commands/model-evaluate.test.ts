import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { modelEvaluate } from '../../../src/cli/commands/model-evaluate.js';
import { BatchBuilder } from '../../../src/engine/batch.js';
import { KvCache } from '../../../src/engine/kv-cache.js';
import { OnnxDecoderRunner } from '../../../src/engine/onnx-decoder-runner.js';
import type { DecoderManifest, WeightFormat } from '../../../src/models/manifest.js';
import { loadConfig } from '../../../src/platform/config.js';
import { Tokenizer } from '../../../src/worker/tokenizer.js';
import { compiled, openFixture } from '../../models/compile/compiled-fixture.js';
import { temporaryFolder } from '../../models/temporary-folder.js';
import { TestTerminal } from '../client/local-service.js';
import { fixtureModel } from '../headrace.js';

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const llama = join(fixtures, 'decoder/llama-tied');
const text = 'The miller listens to the water; a queue holds the work until the wheel turns. '.repeat(12);

interface Options {
  readonly source?: string;
  readonly formats?: readonly WeightFormat[];
  readonly words?: string;
  readonly json?: boolean;
}

/** What the command prints, with a catalogue of one chat model. */
async function evaluate({ source = llama, formats = [], words = text, json = true }: Options = {}) {
  const folder = await temporaryFolder();
  const [textFile, modelsFile] = [join(folder, 'text.txt'), join(folder, 'models.json')];
  await writeFile(textFile, words);
  await writeFile(
    modelsFile,
    JSON.stringify({ models: [fixtureModel('a-chat-model', 'chat', 'decoder/llama-tied')] }),
  );
  const config = loadConfig({ HEADRACE_MODELS: modelsFile, HEADRACE_CACHE_DIR: join(folder, 'cache') });
  const terminal = new TestTerminal();
  const { signal } = new AbortController();
  await modelEvaluate({ source, formats, text: textFile, json, threads: 1 }, { config, terminal, signal });
  return terminal.output;
}

test('the perplexity of float32 is that of a window whose beginnings are read one by one', async () => {
  const checkpoint = await openFixture('decoder/llama-tied');
  const { session, manifest } = await compiled(checkpoint, 'float32');
  const shape = manifest as DecoderManifest;
  const runner = new OnnxDecoderRunner(session, shape);
  const batches = new BatchBuilder();
  const cache = new KvCache({ shape, slots: 1, contextLength: 256, maxBytes: Number.MAX_VALUE });
  cache.fit({ rows: 1, longest: 256, limit: 256 });
  const tokens = [...(await new Tokenizer(checkpoint.tokenizerJson).encode(text))].slice(0, 256);
  let surprise = 0;
  for (let length = 1; length < tokens.length; length++) {
    const batch = batches.build([{ cached: 0, tokens: tokens.slice(0, length) }]);
    const { logits } = (await runner.run({ ...batch, cache: cache.view(0, 1) })).whole;
    const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0);
    surprise += Math.log(sum) - logits[tokens[length]!]!;
  }
  const { formats } = JSON.parse(await evaluate());
  expect(formats).toHaveLength(1);
  expect(formats[0]).toMatchObject({ format: 'float32', tokens: 255, top1: 1, divergence: 0, loss: 0 });
  expect(Math.log(formats[0].perplexity)).toBeCloseTo(surprise / 255, 4);
});

test('other formats are compared with float32, and the quickest within 2% is named', async () => {
  const report = JSON.parse(await evaluate({ formats: ['int4', 'int8'] }));
  const [float32, int4, int8] = report.formats;
  expect([float32.format, int4.format, int8.format]).toEqual(['float32', 'int4', 'int8']);
  for (const other of [int4, int8]) {
    expect(other.tokens).toBe(float32.tokens);
    expect(other.loss).toBeCloseTo(other.perplexity / float32.perplexity - 1, 9);
    expect(other.divergence).toBeGreaterThan(0);
    expect(other.top1).toBeGreaterThan(0.5);
    expect(other.mebibytes).toBeLessThan(float32.mebibytes);
  }
  const within = report.formats.filter(({ loss }: { loss: number }) => loss <= 0.02);
  const speeds = within.map(({ tokensPerSecond }: { tokensPerSecond: number }) => tokensPerSecond);
  const quickest = within[speeds.indexOf(Math.max(...speeds))];
  expect(report.quickestWithin2Percent).toBe(quickest.format);
});

test('a model is named by its id in the catalogue, and people get a table', async () => {
  const lines = (await evaluate({ source: 'a-chat-model', formats: ['int8'], json: false })).split('\n');
  expect(lines[0]).toMatch(/^format +perplexity +to float32 +same top token +KL divergence +tokens\/s +MiB$/);
  expect(lines[1]).toMatch(/^float32 +\d+\.\d{3} +\+0\.00% +100\.0% +0\.0000 +\d+ +\d+$/);
  expect(lines[2]).toMatch(/^int8 +\d+\.\d{3} +[+-]\d+\.\d\d% +\d+\.\d% +\d\.\d{4} +\d+ +\d+$/);
  expect(lines[3]).toMatch(/^\d+ tokens predicted\. The quickest within 2% of float32: (float32|int8)\.$/);
});

test.each([
  ['a name that is nothing', { source: 'nothing' }, /"nothing" is neither a file nor in the catalogue/],
  ['a reranker', { source: join(fixtures, 'encoder/bert-cross-encoder') }, /is a reranker/],
  ['a text that is too short', { words: 'Short.' }, /The text has \d+ tokens; at least 256 are needed/],
])('%s is refused with the reason', async (_, options, message) => {
  await expect(evaluate(options)).rejects.toThrow(message);
});
