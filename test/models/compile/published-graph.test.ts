import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { EncoderEngine } from '../../../src/engine/encoder-engine.js';
import { OnnxEncoderRunner } from '../../../src/engine/onnx-encoder-runner.js';
import { OnnxSession } from '../../../src/engine/onnx-session.js';
import { CheckpointError } from '../../../src/models/compile/checkpoint.js';
import { makeModel } from '../../../src/models/compile/make-model.js';
import { compiledFiles, type EncoderManifest, manifestSchema } from '../../../src/models/manifest.js';
import { encodeModel, type OnnxModel, type OnnxValue } from '../../../src/models/onnx-writer.js';
import { checkpointFiles, hashCheckpoint } from '../../../src/models/sources/checkpoint-files.js';
import { measureStates } from '../../../src/worker/measure-states.js';
import { writePublishedEncoder } from '../../support/published-encoder.js';
import { temporaryFolder } from '../temporary-folder.js';

const fixtures = fileURLToPath(new URL('../../fixtures/encoder/', import.meta.url));

/** Serves what is made of a folder: rows for sequences. */
async function served(source: string) {
  const folder = await temporaryFolder();
  const manifest = (await makeModel({ source, weights: 'int8', folder, measureStates })) as EncoderManifest;
  const session = await OnnxSession.open(join(folder, compiledFiles.graph), { threads: 1 });
  onTestFinished(() => session.close());
  const engine = new EncoderEngine(new OnnxEncoderRunner(session, manifest), {
    contextLength: manifest.contextLength,
    maxBatchTokens: 512,
  });
  const rows = async (sequences: readonly { tokens: Int32Array; types: Int32Array }[]) => {
    engine.encode({ id: 'request', sequences, priority: 'interactive' });
    const events = [];
    while (engine.busy) events.push(...(await engine.step()));
    return events.flatMap((event) => (event.type === 'encoded' ? [...event.rows] : []));
  };
  return { folder, manifest, rows };
}

const untyped = (tokens: readonly number[]) => ({
  tokens: Int32Array.from(tokens),
  types: new Int32Array(tokens.length),
});

/** A folder without weights, and a graph in it made of these parts. */
async function folderWith(graph: Partial<OnnxModel>, fixture = 'bert-bi-encoder'): Promise<string> {
  const folder = await temporaryFolder();
  await cp(join(fixtures, fixture), folder, { recursive: true });
  await rm(join(folder, 'model.safetensors'));
  await writeFile(
    join(folder, 'model.onnx'),
    encodeModel({ nodes: [], initializers: [], inputs: [], outputs: [], ...graph }),
  );
  return folder;
}

const value = (name: string, type: OnnxValue['type'], ...dims: OnnxValue['dims']): OnnxValue => ({
  name,
  type,
  dims,
});
const ids = value('input_ids', 'int64', 'B', 'S');

test.each(['bert-cross-encoder', 'xlm-roberta-cross-encoder'])(
  'a published cross-encoder gives the logits of the reference: %s',
  async (fixture) => {
    const source = await temporaryFolder();
    await writePublishedEncoder(fixture, source);
    const { manifest, rows, folder } = await served(source);
    const expected = JSON.parse(await readFile(join(fixtures, fixture, 'expected.json'), 'utf8'));
    expect(manifest).toMatchObject({
      kind: 'encoder',
      weights: 'published',
      scoring: 'cross-encoder',
      dimension: 1,
      contextLength: 128,
      sourceSha256: await hashCheckpoint(source),
    });
    const text = await readFile(join(folder, compiledFiles.manifest), 'utf8');
    expect(manifestSchema.parse(JSON.parse(text))).toEqual(manifest);
    const logits = await rows(expected.input_ids.map(untyped));
    for (const [index, logit] of logits.entries()) expect(logit).toBeCloseTo(expected.logits[index], 3);
    expect(logits).toHaveLength(expected.logits.length);
  },
);

test('a published bi-encoder gives the mean of its tokens, at length 1', async () => {
  const table = Float32Array.from({ length: 512 * 64 }, (_, at) => Math.sin(at * 0.37));
  const source = await folderWith({
    inputs: [ids, value('attention_mask', 'int64', 'B', 'S')],
    outputs: [value('last_hidden_state', 'float32', 'B', 'S', 64)],
    initializers: [{ name: 'table', type: 'float32', dims: [512, 64], data: new Uint8Array(table.buffer) }],
    nodes: [
      {
        name: 'words',
        domain: '',
        operator: 'Gather',
        inputs: ['table', 'input_ids'],
        outputs: ['last_hidden_state'],
        attributes: {},
      },
    ],
  });
  const { manifest, rows } = await served(source);
  expect(manifest).toMatchObject({ scoring: 'bi-encoder', dimension: 64, tokenTypes: false });
  const sequences = [[5, 6, 7], [400], [9, 9, 10, 11, 12]];
  const result = await rows(sequences.map(untyped));
  for (const [index, sequence] of sequences.entries()) {
    const sum = Array.from({ length: 64 }, (_, i) =>
      sequence.reduce((total, token) => total + table[token * 64 + i]!, 0),
    );
    const length = Math.hypot(...sum);
    const row = result.slice(index * 64, (index + 1) * 64);
    for (const [i, component] of row.entries()) expect(component).toBeCloseTo(sum[i]! / length, 5);
  }
});

test('a folder that has weights is compiled, and its graph is no part of it', async () => {
  const source = await temporaryFolder();
  await cp(join(fixtures, 'bert-bi-encoder'), source, { recursive: true });
  const before = await hashCheckpoint(source);
  await mkdir(join(source, 'onnx'));
  await writeFile(join(source, 'onnx/model.onnx'), 'not looked at');
  expect(await hashCheckpoint(source)).toBe(before);
  const manifest = await makeModel({
    source,
    weights: 'int8',
    folder: await temporaryFolder(),
    measureStates,
  });
  expect(manifest.weights).toBe('int8');
});

test('of several graphs one is taken, with the weights beside it', () => {
  const rest = ['config.json', 'tokenizer.json', 'README.md', 'onnx/model_quantized.onnx'];
  expect(checkpointFiles([...rest, 'onnx/model.onnx', 'onnx/model.onnx_data'])).toEqual([
    'config.json',
    'tokenizer.json',
    'onnx/model.onnx',
    'onnx/model.onnx_data',
  ]);
  expect(checkpointFiles([...rest, 'onnx/model.onnx', 'model.onnx'])).not.toContain('onnx/model.onnx');
  expect(checkpointFiles(['model.safetensors', 'model.onnx'])).toEqual(['model.safetensors']);
});

const rows = value('last_hidden_state', 'float32', 'B', 'S', 64);

test.each<[string, Partial<OnnxModel>, RegExp]>([
  ['takes no tokens', { outputs: [rows] }, /takes nothing; input_ids is missing/],
  [
    'takes what nobody gives',
    { inputs: [ids, value('pixels', 'float32', 3)], outputs: [rows] },
    /takes pixels; an encoder takes input_ids, attention_mask, token_type_ids, position_ids/,
  ],
  [
    'takes another type',
    { inputs: [value('input_ids', 'int32', 'B', 'S')], outputs: [rows] },
    /input_ids is not of type int64/,
  ],
  [
    'gives something else',
    { inputs: [ids], outputs: [value('logits', 'float32', 'B', 2)] },
    /gives logits; a bi-encoder gives sentence_embedding or last_hidden_state/,
  ],
  [
    'gives another type',
    { inputs: [ids], outputs: [value('last_hidden_state', 'uint8', 'B', 'S', 64)] },
    /last_hidden_state is not of type float32/,
  ],
  [
    'has weights in a place of its own',
    {
      inputs: [ids],
      outputs: [rows],
      initializers: [
        { name: 'w', type: 'float32', dims: [1], data: { location: '../../secret', offset: 0, length: 4 } },
      ],
    },
    /its weights are in "..\/..\/secret", which is no file beside it/,
  ],
  [
    'has weights in a file that is missing',
    {
      inputs: [ids],
      outputs: [rows],
      initializers: [
        { name: 'w', type: 'float32', dims: [1], data: { location: 'gone.data', offset: 0, length: 4 } },
      ],
    },
    /its weights in gone\.data: ENOENT/,
  ],
])('a graph that %s is refused by the name of its file', async (_, graph, message) => {
  const source = await folderWith(graph);
  const made = makeModel({ source, weights: 'int8', folder: await temporaryFolder(), measureStates });
  await expect(made).rejects.toThrow(CheckpointError);
  await expect(made).rejects.toThrow(message);
  await expect(made).rejects.toThrow(join(source, 'model.onnx'));
});

test('a classifier of several labels has no score to rank by', async () => {
  const outputs = [value('logits', 'float32', 'B', 3)];
  const source = await folderWith({ inputs: [ids], outputs }, 'bert-cross-encoder');
  await expect(
    makeModel({ source, weights: 'int8', folder: await temporaryFolder(), measureStates }),
  ).rejects.toThrow(/logits has 3 columns; a relevance score is one/);
});

test.each([
  ['text', 'this is no graph'],
  ['nothing', ''],
])('%s under the name of a graph is refused', async (_, contents) => {
  const source = await folderWith({});
  await writeFile(join(source, 'model.onnx'), contents);
  const folder = await temporaryFolder();
  await expect(makeModel({ source, weights: 'int8', folder, measureStates })).rejects.toThrow(
    /model\.onnx: not an ONNX file/,
  );
  expect(await readdir(folder)).toEqual([]);
});
