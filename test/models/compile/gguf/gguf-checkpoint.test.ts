import { copyFile, readFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gguf } from '@huggingface/gguf';
import { expect, onTestFinished, test } from 'vitest';
import { type Checkpoint, CheckpointError } from '../../../../src/models/compile/checkpoint.js';
import { GgufMetadata } from '../../../../src/models/compile/gguf/gguf-metadata.js';
import { openCheckpoint } from '../../../../src/models/compile/open-checkpoint.js';
import { hashFile } from '../../../../src/models/sources/checkpoint-files.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { changedGguf } from './changed-gguf.js';

const fixtures = join(dirname(fileURLToPath(import.meta.url)), '../../../fixtures');
const fixture = join(fixtures, 'gguf/llama-tied-q8_0.gguf');

async function opened(path: string): Promise<Checkpoint> {
  const checkpoint = await openCheckpoint(path);
  onTestFinished(() => checkpoint.close());
  return checkpoint;
}

async function refusal(path: string): Promise<Error> {
  const error = await openCheckpoint(path).then(
    () => new Error('it was opened'),
    (reason: Error) => reason,
  );
  expect(error).toBeInstanceOf(CheckpointError);
  expect(error.message).toContain(path);
  return error;
}

/** A copy of the fixture whose bytes `patch` has changed. */
async function patched(patch: (bytes: Buffer) => void): Promise<string> {
  const bytes = await readFile(fixture);
  patch(bytes);
  const path = join(await temporaryFolder(), 'patched.gguf');
  await writeFile(path, bytes);
  return path;
}

test('a llama file has the configuration of its Hugging Face folder', async () => {
  const checkpoint = await opened(fixture);
  const folder = await opened(join(fixtures, 'decoder/llama-tied'));
  expect({ ...checkpoint.config, normEpsilon: 0 }).toEqual({ ...folder.config, normEpsilon: 0 });
  expect(checkpoint.config).toMatchObject({ normEpsilon: Math.fround(1e-5) });
  expect(checkpoint.endTokens).toEqual(folder.endTokens);
  expect(checkpoint.chatTemplate).toBe(folder.chatTemplate);
  expect(checkpoint.beginText).toBe(folder.beginText);
  expect(checkpoint.endText).toBe(folder.endText);
  expect(checkpoint.sha256).toBe(await hashFile(fixture));
});

for (const [file, step] of [
  ['llama-tied-q8_0', 1 / 127],
  ['llama-tied-q4_1', 1 / 8],
] as const) {
  test(`every tensor of ${file} is that of the Hugging Face folder, within its format's rounding`, async () => {
    const checkpoint = await opened(join(fixtures, 'gguf', `${file}.gguf`));
    const folder = await opened(join(fixtures, 'decoder/llama-tied'));
    const layer = [
      'input_layernorm',
      'self_attn.q_proj',
      'self_attn.k_proj',
      'self_attn.v_proj',
      'self_attn.o_proj',
      'post_attention_layernorm',
      'mlp.gate_proj',
      'mlp.up_proj',
      'mlp.down_proj',
    ];
    const names = ['model.embed_tokens.weight', 'model.norm.weight'].concat(
      layer.flatMap((part) => [0, 1].map((index) => `model.layers.${index}.${part}.weight`)),
    );
    for (const name of names) {
      const shape = folder.shape(name);
      expect(checkpoint.shape(name)).toEqual(shape);
      const expected = await folder.read(name, shape);
      const values = await checkpoint.read(name, shape);
      const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      const worst = expected.reduce((most, value, at) => Math.max(most, Math.abs(value - values[at]!)), 0);
      expect(worst, name).toBeLessThanOrEqual(largest * step);
    }
    expect(checkpoint.has('lm_head.weight')).toBe(false);
  });
}

test('qwen2 and qwen3 are read from keys of their own and not permuted', async () => {
  const llama = await opened(fixture);
  const keys = (to: string) => (key: string) => key.replace(/^llama\./, `${to}.`);
  for (const architecture of ['qwen2', 'qwen3'] as const) {
    const path = await changedGguf(
      fixture,
      { 'general.architecture': architecture },
      { keys: keys(architecture) },
    );
    const checkpoint = await opened(path);
    expect(checkpoint.config).toMatchObject({
      architecture,
      attentionBias: architecture === 'qwen2',
      queryKeyNorm: architecture === 'qwen3',
      headSize: 16,
      layers: 2,
    });
    const name = 'model.layers.0.self_attn.q_proj.weight';
    const [stored, undone] = await Promise.all([checkpoint.read(name, [64, 64]), llama.read(name, [64, 64])]);
    // Row 1 of a permuted head is the pair of row 0: row 8 of a head of 16.
    expect(stored.subarray(64, 128)).toEqual(undone.subarray(8 * 64, 9 * 64));
    expect(stored.subarray(2 * 64, 3 * 64)).toEqual(undone.subarray(64, 128));
  }
});

test('a sliding window ends the context, and published sampling is kept', async () => {
  const checkpoint = await opened(
    await changedGguf(fixture, {
      'llama.attention.sliding_window': 128,
      'general.sampling.temp': 0.5,
      'general.sampling.top_k': 20,
    }),
  );
  expect(checkpoint.config).toMatchObject({ contextLength: 128 });
  expect(checkpoint.generation).toEqual({ temperature: 0.5, topP: undefined, topK: 20 });
});

test('end-of-turn and end-of-message tokens end a turn too', async () => {
  const path = await changedGguf(fixture, {
    'tokenizer.ggml.eot_token_id': 0,
    'tokenizer.ggml.eom_token_id': 2,
  });
  expect((await opened(path)).endTokens).toEqual([2, 0]);
});

test('a file cut short anywhere is refused with the reason', async () => {
  const size = (await readFile(fixture)).length;
  for (const length of [0, 3, 20, 200, 4000, 12_000, 13_400, size - 1]) {
    const path = join(await temporaryFolder(), 'short.gguf');
    await copyFile(fixture, path);
    await truncate(path, length);
    expect((await refusal(path)).message, String(length)).toMatch(/cut short|not a valid gguf file/);
  }
});

test('a tensor that begins past the end of the file is refused by name', async () => {
  const path = await patched((bytes) => {
    const at = bytes.indexOf('output_norm.weight') + 'output_norm.weight'.length;
    // Number of dimensions, one dimension, type; then the offset.
    bytes.writeBigUInt64LE(2n ** 40n, at + 4 + 8 + 4);
  });
  expect((await refusal(path)).message).toMatch(/tensor output_norm\.weight ends at byte \d+/);
});

test('a tensor at an unaligned place is refused by name', async () => {
  const path = await patched((bytes) => {
    const at = bytes.indexOf('output_norm.weight') + 'output_norm.weight'.length;
    bytes.writeBigUInt64LE(33n, at + 4 + 8 + 4);
  });
  expect((await refusal(path)).message).toMatch(/begins at byte 33, which is not a multiple of 32/);
});

test('a tensor in a format that is not read is refused by the name of the format', async () => {
  const path = await patched((bytes) => {
    const at = bytes.indexOf('token_embd.weight') + 'token_embd.weight'.length;
    bytes.writeUInt32LE(16, at + 4 + 16);
  });
  expect((await refusal(path)).message).toMatch(/token_embd\.weight is stored as IQ2_XXS; supported are F32/);
});

test('a row that does not divide into blocks is refused', async () => {
  const path = await patched((bytes) => {
    const at = bytes.indexOf('token_embd.weight') + 'token_embd.weight'.length;
    bytes.writeUInt32LE(12, at + 4 + 16);
  });
  expect((await refusal(path)).message).toMatch(/\[512,64\] does not divide into the blocks of Q4_K/);
});

test('a tensor that is missing or of another shape fails its read by name', async () => {
  const renamed = await patched((bytes) => {
    bytes.write('output_morn', bytes.indexOf('output_norm'));
  });
  const checkpoint = await opened(renamed);
  expect(checkpoint.has('model.norm.weight')).toBe(false);
  await expect(checkpoint.read('model.norm.weight', [64])).rejects.toThrow(
    /tensor output_norm\.weight is missing/,
  );
  await expect(checkpoint.read('model.embed_tokens.weight', [512, 65])).rejects.toThrow(
    /tensor token_embd\.weight is \[512,64\], but the configuration asks for \[512,65\]/,
  );
});

const refused: ReadonlyArray<[string, Parameters<typeof changedGguf>[1], RegExp]> = [
  [
    'of an unknown architecture',
    { 'general.architecture': 'mamba' },
    /architecture "mamba" is not supported; supported are llama, qwen2, qwen3/,
  ],
  ['without a size', { 'llama.embedding_length': null }, /llama\.embedding_length is missing/],
  ['with a size that is none', { 'llama.block_count': 0 }, /llama\.block_count is 0, not a size/],
  ['with heads that do not divide', { 'llama.attention.head_count_kv': 3 }, /4 heads cannot share 3/],
  [
    'with heads that differ from layer to layer',
    { 'llama.attention.head_count': [4, 4] },
    /llama\.attention\.head_count is not a number/,
  ],
  ['of experts', { 'llama.expert_count': 8 }, /mixtures of experts/],
  ['with a rope scaling that is not known', { 'llama.rope.scaling.type': 'yarn' }, /rope scaling "yarn"/],
  [
    'with rotary positions over half of a head',
    { 'llama.rope.dimension_count': 8 },
    /over a part of each head/,
  ],
  [
    'with a tokenizer of another kind',
    { 'tokenizer.ggml.model': 'bert' },
    /tokenizer "bert" is not supported; supported are gpt2 \(byte-level BPE\), llama \(SentencePiece BPE\)/,
  ],
  [
    'with a pre-tokenizer that is not known',
    { 'tokenizer.ggml.pre': 'viking' },
    /pre-tokenizer "viking" is not supported; supported are gpt-2, smollm/,
  ],
  ['without merges', { 'tokenizer.ggml.merges': null }, /tokenizer\.ggml\.merges is missing/],
  ['without tokens', { 'tokenizer.ggml.tokens': null }, /tokenizer\.ggml\.tokens is missing/],
  [
    'with a merge of unknown tokens',
    { 'tokenizer.ggml.merges': ['h e', 'nothing atall'] },
    /merge "nothing atall" is not of two tokens into a third/,
  ],
  [
    'with a token twice',
    { 'tokenizer.ggml.tokens': ['a', 'b', 'a'], 'tokenizer.ggml.merges': ['a b'] },
    /tokens 0 and 2 are both "a"/,
  ],
  [
    'with an end token that is none',
    { 'tokenizer.ggml.eos_token_id': 512 },
    /eos_token_id 512 is not a token/,
  ],
  ['that is one part of several', { 'split.count': 2 }, /one part of a split model/],
];

for (const [what, changes, message] of refused) {
  test(`a file ${what} is refused with the reason`, async () => {
    expect((await refusal(await changedGguf(fixture, changes))).message).toMatch(message);
  });
}

test('a file with more tokens than rows of its embedding table is refused', async () => {
  const metadata: object = (await gguf(fixture, { allowLocalFile: true })).metadata;
  const tokens = new GgufMetadata(fixture, { ...metadata }).texts('tokenizer.ggml.tokens');
  const path = await changedGguf(fixture, { 'tokenizer.ggml.tokens': [...tokens, 'one more'] });
  expect((await refusal(path)).message).toMatch(/513 tokens do not fit an embedding table of 512 rows/);
});

test('rotary factors that are not those of Llama 3 are refused', async () => {
  const name = 'output_norm.weight';
  const path = await changedGguf(fixture, {}, { rename: [name, 'rope_freqs.weight'] });
  expect((await refusal(path)).message).toMatch(/the factors in rope_freqs\.weight are not those of Llama 3/);
});

test('something else under the name of a GGUF file is refused', async () => {
  const path = join(await temporaryFolder(), 'other.gguf');
  await writeFile(path, 'GGML and much more that is not of this format');
  expect((await refusal(path)).message).toMatch(/not a valid gguf file/);
});
