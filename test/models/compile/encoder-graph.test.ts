import { describe, expect, it, test } from 'vitest';
import type { Tensor } from '../../../src/engine/onnx-session.js';
import type { Checkpoint, EncoderConfig } from '../../../src/models/compile/checkpoint.js';
import { maskedTokens } from '../../../src/models/compile/encoder-graph.js';
import type { EncoderManifest } from '../../../src/models/manifest.js';
import { maxBatchTokens } from '../../../src/worker/engine-settings.js';
import { compiled, openFixture, overridden } from './compiled-fixture.js';

const sequences = [
  [2, 208, 321, 3],
  [2, 329, 213, 139, 163, 20, 3, 134, 323, 3],
];

type Compiled = Awaited<ReturnType<typeof compiled>>;

/** The rows of `tokens`, padded to the longest; `type` gives a token's type where the graph takes types. */
async function encode(
  { session, manifest }: Compiled,
  tokens: readonly (readonly number[])[],
  type: (column: number) => number = () => 0,
): Promise<Float32Array[]> {
  const { paddingToken, firstPosition, dimension, tokenTypes } = manifest as EncoderManifest;
  const width = Math.max(...tokens.map((row) => row.length));
  const fill = (value: (row: readonly number[], column: number) => number): Tensor => ({
    type: 'int64',
    data: BigInt64Array.from(
      tokens.flatMap((row) => Array.from({ length: width }, (_, column) => BigInt(value(row, column)))),
    ),
    dims: [tokens.length, width],
  });
  const { rows } = await session.run({
    input_ids: fill((row, column) => row[column] ?? paddingToken),
    attention_mask: fill((row, column) => (column < row.length ? 1 : 0)),
    position_ids: fill((_, column) => firstPosition + column),
    ...(tokenTypes && { token_type_ids: fill((_, column) => type(column)) }),
  });
  return tokens.map((_, row) => (rows!.data as Float32Array).slice(row * dimension, (row + 1) * dimension));
}

const fixtures = ['bert-bi-encoder', 'bert-cross-encoder', 'xlm-roberta-cross-encoder'];

test.each(fixtures)('%s gives a sequence the same row alone and padded', async (name) => {
  const model = await compiled(await openFixture(`encoder/${name}`), 'float32');
  const [padded] = await encode(model, sequences);
  const [alone] = await encode(model, sequences.slice(0, 1));
  for (const [index, value] of alone!.entries()) expect(padded![index]).toBeCloseTo(value, 5);
});

/** A fixture that takes sequences of `contextLength` tokens: its positions once more, and each time a little larger. */
async function lengthened(name: string, contextLength: number): Promise<Checkpoint> {
  const checkpoint = await openFixture(`encoder/${name}`);
  const config = checkpoint.config as EncoderConfig;
  const positions = contextLength + config.firstPosition;
  const changed = overridden(checkpoint, { contextLength, positions });
  const read: Checkpoint['read'] = async (tensor, shape) => {
    if (!tensor.includes('position_embeddings')) return checkpoint.read(tensor, shape);
    const table = await checkpoint.read(tensor, [config.positions, config.hiddenSize]);
    return Float32Array.from(
      { length: positions * config.hiddenSize },
      (_, at) => table[at % table.length]! * (1 + Math.floor(at / table.length) / 64),
    );
  };
  return { ...changed, read };
}

const tokensOf = (count: number) => Array.from({ length: count }, (_, at) => 5 + ((at * at) % 300));

test('sequences that share a batch of a worker are all computed in one way, whatever shares it', () => {
  expect(maxBatchTokens.encoder).toBeLessThanOrEqual(maskedTokens);
});

describe.each(fixtures)('a long sequence of %s', (name) => {
  // Alone it is computed block by block, padded with a mask and all at once.
  it.each([513, 700, 1_024])('of %i tokens has the same row alone and padded', async (length) => {
    const model = await compiled(await lengthened(name, 1_100), 'float32');
    const [padded] = await encode(model, [tokensOf(length), tokensOf(1_100)]);
    const [alone] = await encode(model, [tokensOf(length)]);
    for (const [index, value] of alone!.entries()) expect(padded![index]).toBeCloseTo(value, 5);
  });
});

test('the memory for a long sequence does not grow with the square of its length', async () => {
  const length = 8_192;
  const { heads } = (await openFixture('encoder/xlm-roberta-cross-encoder')).config as EncoderConfig;
  const model = await compiled(await lengthened('xlm-roberta-cross-encoder', length), 'float32');
  const before = process.memoryUsage.rss();
  const [row] = await encode(model, [tokensOf(length)]);
  expect(row![0]).not.toBeNaN();
  // What a session has once used it keeps.
  const allScores = heads * length * length * Float32Array.BYTES_PER_ELEMENT;
  expect(process.memoryUsage.rss() - before).toBeLessThan(allScores / 4);
});

test('embeddings have length 1', async () => {
  const model = await compiled(await openFixture('encoder/bert-bi-encoder'), 'float32');
  for (const row of await encode(model, sequences)) expect(Math.hypot(...row)).toBeCloseTo(1, 5);
});

test('a model whose tokenizer types pairs takes token types, and they count', async () => {
  const checkpoint = await openFixture('encoder/bert-cross-encoder');
  const typed = await compiled(overridden(checkpoint, { typedPairs: true }), 'float32');
  const untyped = await compiled(checkpoint, 'float32');
  expect(typed.session.inputNames).toContain('token_type_ids');
  expect(untyped.session.inputNames).not.toContain('token_type_ids');
  const [reference] = await encode(untyped, sequences);
  const [zeros] = await encode(typed, sequences);
  const [pair] = await encode(typed, sequences, (column) => (column < 2 ? 0 : 1));
  expect(zeros![0]).toBeCloseTo(reference![0]!, 5);
  expect(Math.abs(pair![0]! - zeros![0]!)).toBeGreaterThan(1e-3);
});

// Measured on these models: at most 0.13 on a logit, where texts deviate by 0.5.
test.each(fixtures)('%s in int8 is near float32', async (name) => {
  const exact = await encode(await compiled(await openFixture(`encoder/${name}`), 'float32'), sequences);
  const rounded = await encode(await compiled(await openFixture(`encoder/${name}`), 'int8'), sequences);
  for (const [index, row] of exact.entries()) {
    for (const [at, value] of row.entries()) expect(Math.abs(rounded[index]![at]! - value)).toBeLessThan(0.2);
  }
});
