import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { type Checkpoint, CheckpointError } from '../../../src/models/compile/checkpoint.js';
import { openCheckpoint } from '../../../src/models/compile/open-checkpoint.js';
import { hashCheckpoint } from '../../../src/models/sources/checkpoint-files.js';
import { temporaryFolder } from '../temporary-folder.js';
import { writeSafetensors } from './safetensors/write-safetensors.js';

const fixtures = join(dirname(fileURLToPath(import.meta.url)), '../../fixtures');

async function opened(path: string): Promise<Checkpoint> {
  const checkpoint = await openCheckpoint(path);
  onTestFinished(() => checkpoint.close());
  return checkpoint;
}

/** A fixture's copy with changed files: a string replaces a file, an object is merged into a JSON file, null removes it. */
async function changed(fixture: string, changes: Record<string, string | object | null>): Promise<string> {
  const folder = await temporaryFolder();
  await cp(join(fixtures, fixture), folder, { recursive: true });
  for (const [name, change] of Object.entries(changes)) {
    const path = join(folder, name);
    if (change === null) {
      await rm(path);
    } else if (typeof change === 'string') {
      await writeFile(path, change);
    } else {
      const before = await readFile(path, 'utf8').catch(() => '{}');
      await writeFile(path, JSON.stringify({ ...JSON.parse(before), ...change }));
    }
  }
  return folder;
}

test('a llama folder is read', async () => {
  const checkpoint = await opened(join(fixtures, 'decoder/llama-tied'));
  expect(checkpoint.config).toEqual({
    kind: 'decoder',
    architecture: 'llama',
    vocabularySize: 512,
    hiddenSize: 64,
    intermediateSize: 160,
    layers: 2,
    heads: 4,
    kvHeads: 2,
    headSize: 16,
    normEpsilon: 1e-5,
    contextLength: 512,
    attentionBias: false,
    queryKeyNorm: false,
    tiedEmbeddings: true,
    rope: { theta: 100_000 },
  });
  expect(checkpoint.endTokens).toEqual([2]);
  expect(checkpoint.beginText).toBe('<|im_start|>');
  expect(checkpoint.endText).toBe('<|im_end|>');
  expect(checkpoint.chatTemplate).toContain("message['role']");
  expect(checkpoint.has('lm_head.weight')).toBe(false);
  expect(checkpoint.shape('model.embed_tokens.weight')).toEqual([512, 64]);
  const norm = await checkpoint.read('model.norm.weight', [64]);
  expect(norm).toHaveLength(64);
  expect(norm.every((value) => Math.abs(value - 1) < 1)).toBe(true);
});

test('llama 3 rope scaling is read, new style and old', async () => {
  const rope = {
    theta: 500_000,
    llama3: { factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalContextLength: 64 },
  };
  expect((await opened(join(fixtures, 'decoder/llama3-rope'))).config).toMatchObject({ rope });
  const { rope_theta, rope_type, ...scaling } = JSON.parse(
    await readFile(join(fixtures, 'decoder/llama3-rope/config.json'), 'utf8'),
  ).rope_parameters;
  const oldStyle = { rope_parameters: null, rope_theta, rope_scaling: { ...scaling, type: rope_type } };
  const folder = await changed('decoder/llama3-rope', { 'config.json': oldStyle });
  expect((await opened(folder)).config).toMatchObject({ rope });
});

test('qwen2 has biases and bfloat16 weights', async () => {
  const checkpoint = await opened(join(fixtures, 'decoder/qwen2-bias'));
  expect(checkpoint.config).toMatchObject({
    architecture: 'qwen2',
    attentionBias: true,
    queryKeyNorm: false,
  });
  const bias = await checkpoint.read('model.layers.0.self_attn.q_proj.bias', [64]);
  expect(bias.every((value) => Number.isFinite(value))).toBe(true);
  expect(bias.some((value) => value !== 0)).toBe(true);
});

test('qwen3 has normalized heads of a size of their own', async () => {
  const { config } = await opened(join(fixtures, 'decoder/qwen3-qknorm'));
  expect(config).toMatchObject({
    architecture: 'qwen3',
    attentionBias: false,
    queryKeyNorm: true,
    headSize: 32,
  });
});

test('mistral is a llama whose context ends with its window', async () => {
  const folder = await changed('decoder/llama-tied', {
    'config.json': { model_type: 'mistral', sliding_window: 100 },
  });
  expect((await opened(folder)).config).toMatchObject({ architecture: 'llama', contextLength: 100 });
});

test('end tokens are those of the generation config, the config and the tokenizer', async () => {
  const folder = await changed('decoder/llama-tied', {
    'generation_config.json': { eos_token_id: [5, 6] },
    'config.json': { eos_token_id: 6 },
    'tokenizer_config.json': { eos_token: { content: '<|im_end|>', special: true } },
  });
  const checkpoint = await opened(folder);
  expect(checkpoint.endTokens).toEqual([5, 6, 2]);
  expect(checkpoint.endText).toBe('<|im_end|>');
});

test('sampling defaults are those its authors published', async () => {
  const folder = await changed('decoder/llama-tied', {
    'generation_config.json': { temperature: 0.6, top_p: 0.95, top_k: 0 },
  });
  expect((await opened(folder)).generation).toEqual({ temperature: 0.6, topP: 0.95, topK: -1 });
});

test('the chat template is a file, else the field, else the one named default, else none', async () => {
  const template = async (chat_template: unknown) =>
    (
      await opened(
        await changed('decoder/llama-tied', {
          'chat_template.jinja': null,
          'tokenizer_config.json': { chat_template },
        }),
      )
    ).chatTemplate;
  expect(await template('field')).toBe('field');
  expect(
    await template([
      { name: 'tool_use', template: 'tools' },
      { name: 'default', template: 'plain' },
    ]),
  ).toBe('plain');
  expect(await template(null)).toBeNull();
  const file = await changed('decoder/llama-tied', { 'tokenizer_config.json': { chat_template: 'field' } });
  expect((await opened(file)).chatTemplate).toContain("message['role']");
});

test('a BERT cross-encoder is read without the prefix of its task', async () => {
  const checkpoint = await opened(join(fixtures, 'encoder/bert-cross-encoder'));
  expect(checkpoint.config).toEqual({
    kind: 'encoder',
    architecture: 'bert',
    scoring: 'cross-encoder',
    vocabularySize: 512,
    hiddenSize: 64,
    intermediateSize: 160,
    layers: 2,
    heads: 4,
    normEpsilon: 1e-12,
    contextLength: 128,
    positions: 130,
    firstPosition: 0,
    tokenTypes: 2,
    typedPairs: false,
    paddingToken: 0,
    activation: 'gelu',
  });
  expect(checkpoint.endTokens).toEqual([]);
  expect(checkpoint.shape('embeddings.word_embeddings.weight')).toEqual([512, 64]);
  expect(checkpoint.has('bert.embeddings.word_embeddings.weight')).toBe(false);
  expect(await checkpoint.read('classifier.weight', [1, 64])).toHaveLength(64);
});

test.each([
  ['BertTokenizer', { tokenizer_class: 'BertTokenizer' }, true],
  ['no class', { tokenizer_class: null }, true],
  ["transformers' default class", {}, false],
  ['the default class that is told to', { model_input_names: ['input_ids', 'token_type_ids'] }, true],
])('a BERT pair is typed as its tokenizer types it: %s', async (_, changes, typedPairs) => {
  const folder = await changed('encoder/bert-cross-encoder', { 'tokenizer_config.json': changes });
  expect((await opened(folder)).config).toMatchObject({ typedPairs });
});

test('a bare BERT is a bi-encoder', async () => {
  const { config } = await opened(join(fixtures, 'encoder/bert-bi-encoder'));
  expect(config).toMatchObject({ scoring: 'bi-encoder', contextLength: 128 });
});

test('positions of XLM-RoBERTa start after the padding token', async () => {
  const folder = await changed('encoder/xlm-roberta-cross-encoder', {
    'tokenizer_config.json': { model_max_length: 1e30 },
  });
  expect((await opened(folder)).config).toMatchObject({
    architecture: 'xlm-roberta',
    scoring: 'cross-encoder',
    positions: 130,
    firstPosition: 2,
    contextLength: 128,
    paddingToken: 1,
  });
});

test('truncation and padding that were left in a tokenizer are taken out', async () => {
  const folder = await changed('encoder/bert-bi-encoder', {
    'tokenizer.json': {
      truncation: { max_length: 8, strategy: 'LongestFirst', stride: 0, direction: 'Right' },
      padding: { strategy: { Fixed: 8 }, direction: 'Right', pad_id: 0, pad_type_id: 0, pad_token: '[PAD]' },
    },
  });
  const { tokenizerJson } = await opened(folder);
  const original = JSON.parse(
    await readFile(join(fixtures, 'encoder/bert-bi-encoder/tokenizer.json'), 'utf8'),
  );
  expect(JSON.parse(tokenizerJson)).toEqual({ ...original, truncation: null, padding: null });
});

test('the length that sentence-transformers gives is a limit', async () => {
  const folder = await changed('encoder/bert-bi-encoder', {
    'sentence_bert_config.json': { max_seq_length: 64 },
  });
  expect((await opened(folder)).config).toMatchObject({ contextLength: 64 });
});

test('gamma and beta of old BERT files are the weight and bias of a norm', async () => {
  const folder = await changed('encoder/bert-bi-encoder', {});
  await writeSafetensors(
    join(folder, 'model.safetensors'),
    { 'bert.embeddings.LayerNorm.gamma': { dtype: 'F32', shape: [1], data_offsets: [0, 4] } },
    new Uint8Array(4),
  );
  expect((await opened(folder)).has('embeddings.LayerNorm.weight')).toBe(true);
});

const refused: ReadonlyArray<[string, string, Record<string, string | object | null>, RegExp]> = [
  [
    'of an unknown architecture',
    'decoder/llama-tied',
    { 'config.json': { model_type: 'mamba' } },
    /config\.json: architecture "mamba" is not supported; supported are llama, mistral, qwen2, qwen3, bert/,
  ],
  ['without a config', 'decoder/llama-tied', { 'config.json': null }, /there is no config\.json/],
  [
    'with a broken config',
    'decoder/llama-tied',
    { 'config.json': '{"model_type": ' },
    /config\.json: not JSON/,
  ],
  [
    'with a missing number',
    'decoder/llama-tied',
    { 'config.json': { hidden_size: 'many' } },
    /config\.json: hidden_size: /,
  ],
  [
    'with a rope scaling that is not known',
    'decoder/llama-tied',
    { 'config.json': { rope_parameters: { rope_type: 'yarn', factor: 4 } } },
    /rope scaling "yarn"/,
  ],
  [
    'with half of the rope scaling',
    'decoder/llama-tied',
    { 'config.json': { rope_parameters: { rope_type: 'llama3', factor: 4 } } },
    /config\.json: low_freq_factor/,
  ],
  [
    'that is quantized',
    'decoder/llama-tied',
    { 'config.json': { quantization_config: { quant_method: 'gptq' } } },
    /quantized by gptq/,
  ],
  ['without a tokenizer', 'decoder/llama-tied', { 'tokenizer.json': null }, /tokenizer\.json: is missing/],
  ['with a broken tokenizer', 'decoder/llama-tied', { 'tokenizer.json': '{}' }, /tokenizer\.json: model/],
  ['without weights', 'decoder/llama-tied', { 'model.safetensors': null }, /neither model\.safetensors/],
  [
    'that classifies',
    'encoder/bert-cross-encoder',
    { 'config.json': { id2label: { 0: 'no', 1: 'yes' } } },
    /a classifier of 2 labels/,
  ],
  [
    'with an activation that is not known',
    'encoder/bert-bi-encoder',
    { 'config.json': { hidden_act: 'tanh' } },
    /hidden_act: only gelu and relu/,
  ],
];

for (const [what, fixture, changes, message] of refused) {
  test(`a folder ${what} is refused with the reason`, async () => {
    const opening = openCheckpoint(await changed(fixture, changes));
    await expect(opening).rejects.toBeInstanceOf(CheckpointError);
    await expect(opening).rejects.toThrow(message);
  });
}

test('a bi-encoder that does not pool by the mean is refused', async () => {
  const folder = await changed('encoder/bert-bi-encoder', {});
  await cp(join(folder, 'config.json'), join(folder, '1_Pooling/config.json'));
  await writeFile(join(folder, '1_Pooling/config.json'), '{"pooling_mode_cls_token": true}');
  await expect(openCheckpoint(folder)).rejects.toThrow(/only mean pooling is supported/);
});

test('a tensor of another shape than asked for is refused by name', async () => {
  const checkpoint = await opened(join(fixtures, 'decoder/llama-tied'));
  await expect(checkpoint.read('model.norm.weight', [65])).rejects.toThrow(
    /tensor model\.norm\.weight is \[64\], but the configuration asks for \[65\]/,
  );
  await expect(checkpoint.read('model.other', [1])).rejects.toThrow(/tensor model\.other is missing/);
});

test('nothing at the path, and a file of another kind, are refused', async () => {
  await expect(openCheckpoint('/nowhere/at-all')).rejects.toThrow(/\/nowhere\/at-all: ENOENT/);
  await expect(openCheckpoint(fileURLToPath(import.meta.url))).rejects.toThrow(/neither a folder nor/);
});

test('the hash follows the files that are read and no others', async () => {
  const original = await hashCheckpoint(join(fixtures, 'decoder/llama-tied'));
  const hashed = async (changes: Record<string, string | object | null>) =>
    (await opened(await changed('decoder/llama-tied', changes))).sha256;
  expect(await hashed({})).toBe(original);
  expect(await hashed({ 'README.md': 'words' })).toBe(original);
  expect(await hashed({ 'config.json': { rms_norm_eps: 1e-4 } })).not.toBe(original);
  expect(await hashed({ 'chat_template.jinja': 'other' })).not.toBe(original);
});
