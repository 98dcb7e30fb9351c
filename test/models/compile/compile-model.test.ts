import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CheckpointError } from '../../../src/models/compile/checkpoint.js';
import { compileModel } from '../../../src/models/compile/compile-model.js';
import { manifestSchema } from '../../../src/models/manifest.js';
import { measureStates } from '../../../src/worker/measure-states.js';
import { temporaryFolder } from '../temporary-folder.js';
import { openFixture, overridden } from './compiled-fixture.js';

test('a compiled folder holds graph, weights, tokenizer and manifest', async () => {
  const folder = await temporaryFolder();
  const checkpoint = await openFixture('decoder/llama-tied');
  const manifest = await compileModel({ checkpoint, weights: 'int8', folder, measureStates });
  expect((await readdir(folder)).sort()).toEqual([
    'manifest.json',
    'model.onnx',
    'model.onnx.data',
    'tokenizer.json',
  ]);
  const written = manifestSchema.parse(JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')));
  expect(written).toEqual(manifest);
  expect(await readFile(join(folder, 'tokenizer.json'), 'utf8')).toBe(checkpoint.tokenizerJson);
});

test("a decoder's manifest is what its files say", async () => {
  const checkpoint = await openFixture('decoder/llama-tied');
  const manifest = await compileModel({
    checkpoint,
    weights: 'float32',
    folder: await temporaryFolder(),
    measureStates,
  });
  expect(manifest).toMatchObject({
    kind: 'decoder',
    architecture: 'llama',
    weights: 'float32',
    sourceSha256: checkpoint.sha256,
    vocabularySize: 512,
    contextLength: 512,
    layers: 2,
    heads: 4,
    kvHeads: 2,
    headSize: 16,
    endTokens: [2],
    chatTemplate: checkpoint.chatTemplate,
  });
});

test.each([
  ['bert-bi-encoder', { scoring: 'bi-encoder', dimension: 64, paddingToken: 0, firstPosition: 0 }],
  ['bert-cross-encoder', { scoring: 'cross-encoder', dimension: 1, paddingToken: 0, firstPosition: 0 }],
  [
    'xlm-roberta-cross-encoder',
    { scoring: 'cross-encoder', dimension: 1, paddingToken: 1, firstPosition: 2 },
  ],
])("an encoder's manifest is what its files say: %s", async (name, expected) => {
  const checkpoint = await openFixture(`encoder/${name}`);
  const manifest = await compileModel({
    checkpoint,
    weights: 'int8',
    folder: await temporaryFolder(),
    measureStates,
  });
  expect(manifest).toMatchObject({ kind: 'encoder', tokenTypes: false, contextLength: 128, ...expected });
});

test('a tied embedding is stored once in float32', async () => {
  const folder = await temporaryFolder();
  await compileModel({
    checkpoint: await openFixture('decoder/llama-tied'),
    weights: 'float32',
    folder,
    measureStates,
  });
  const source = (await stat(new URL('../../fixtures/decoder/llama-tied/model.safetensors', import.meta.url)))
    .size;
  const rotary = 2 * 512 * 8 * 4;
  const padding = 40 * 4096;
  expect((await stat(join(folder, 'model.onnx.data'))).size).toBeLessThan(source + rotary + padding);
});

test('progress rises to 1', async () => {
  const shares: number[] = [];
  await compileModel({
    checkpoint: await openFixture('encoder/bert-bi-encoder'),
    weights: 'int8',
    folder: await temporaryFolder(),
    measureStates,
    onProgress: (share) => shares.push(share),
  });
  expect(shares).toEqual([...shares].sort((a, b) => a - b));
  expect(shares[0]).toBeGreaterThan(0);
  expect(shares.at(-1)).toBe(1);
});

test('an aborted compilation ends with the reason', async () => {
  const abort = new AbortController();
  const compiling = compileModel({
    checkpoint: await openFixture('decoder/llama-tied'),
    weights: 'int8',
    folder: await temporaryFolder(),
    measureStates,
    onProgress: () => abort.abort(new Error('not wanted any more')),
    signal: abort.signal,
  });
  await expect(compiling).rejects.toThrow('not wanted any more');
});

test.each([
  ['decoder/llama-tied', 'int8', ['llama']],
  ['decoder/llama-tied', 'int4', ['llama']],
  ['decoder/llama-tied', 'float32', []],
  ['encoder/bert-bi-encoder', 'int8', ['bert']],
  ['encoder/bert-bi-encoder', 'float32', []],
] as const)('what is rounded to bytes is measured: %s in %s', async (fixture, weights, expected) => {
  const measured: string[] = [];
  await compileModel({
    checkpoint: await openFixture(fixture),
    weights,
    folder: await temporaryFolder(),
    measureStates: (graph) => {
      measured.push(graph.manifest.architecture);
      return measureStates(graph);
    },
  });
  expect(measured).toEqual(expected);
});

test('an abort while states are measured ends the compilation with the reason', async () => {
  const abort = new AbortController();
  const compiling = compileModel({
    checkpoint: await openFixture('decoder/llama-tied'),
    weights: 'int8',
    folder: await temporaryFolder(),
    measureStates: (graph) => {
      const measuring = measureStates(graph);
      abort.abort(new Error('not wanted any more'));
      return measuring;
    },
    signal: abort.signal,
  });
  await expect(compiling).rejects.toThrow('not wanted any more');
});

test.each([
  ['decoder/llama-tied', { kvHeads: 4 }, 'self_attn.k_proj.weight'],
  ['decoder/llama-tied', { intermediateSize: 128 }, 'mlp.gate_proj.weight'],
  ['decoder/llama-tied', { tiedEmbeddings: false }, 'lm_head.weight'],
  ['decoder/llama-tied', { layers: 3 }, 'model.layers.2.'],
  ['encoder/bert-cross-encoder', { positions: 512 }, 'position_embeddings.weight'],
  ['encoder/bert-cross-encoder', { architecture: 'xlm-roberta' }, 'classifier.dense.weight'],
])('%s with %o is refused by the tensor: %s', async (fixture, changes, tensor) => {
  for (const weights of ['float32', 'int8'] as const) {
    const checkpoint = overridden(await openFixture(fixture), changes);
    const compiling = compileModel({ checkpoint, weights, folder: await temporaryFolder(), measureStates });
    await expect(compiling).rejects.toThrow(CheckpointError);
    await expect(compiling).rejects.toThrow(tensor);
  }
});
