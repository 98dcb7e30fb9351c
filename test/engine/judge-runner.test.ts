import { expect, test } from 'vitest';
import type { EncoderShape } from '../../src/engine/encoder-runner.js';
import { JudgeRunner } from '../../src/engine/judge-runner.js';
import { FakeDecoderRunner, fakeLogits, fakeShape } from './support/fake-decoder-runner.js';

const answers = { yes: 7, no: 9 };
const shape: EncoderShape = {
  dimension: 1,
  vocabularySize: fakeShape.vocabularySize,
  paddingToken: 0,
  firstPosition: 0,
  tokenTypes: false,
};

/** Judges sequences of these lengths in one batch; returns the rows beside what they should be. */
async function judge(lengths: readonly number[], chunkTokens: number) {
  const sequences = lengths.map((length, row) =>
    Array.from({ length }, (_, at) => (5 * row + 3 * at + 1) % fakeShape.vocabularySize),
  );
  const width = Math.max(...lengths);
  const columns = (value: (tokens: readonly number[], at: number) => number) =>
    BigInt64Array.from(
      sequences.flatMap((tokens) => Array.from({ length: width }, (_, at) => BigInt(value(tokens, at)))),
    );
  const runner = new FakeDecoderRunner();
  const rows = await new JudgeRunner({ runner, shape, answers, chunkTokens }).run({
    rows: lengths.length,
    width,
    inputIds: columns((tokens, at) => tokens[at] ?? 0),
    attentionMask: columns((tokens, at) => (at < tokens.length ? 1 : 0)),
    positionIds: columns((_, at) => at),
    tokenTypeIds: new BigInt64Array(),
  });
  const expected = Float32Array.from(sequences, (tokens) => {
    const logits = fakeLogits(tokens);
    return logits[answers.yes]! - logits[answers.no]!;
  });
  return { rows, expected, runs: runner.runs.map(({ rows: count, width: tokens }) => `${count}x${tokens}`) };
}

test('what fits a chunk is read in one run', async () => {
  const { rows, expected, runs } = await judge([8, 3, 7], 8);
  expect(rows).toEqual(expected);
  expect(runs).toEqual(['3x8']);
});

test('what is longer is read chunk by chunk, and judged as if it were read at once', async () => {
  const { rows, expected, runs } = await judge([29], 8);
  expect(rows).toEqual(expected);
  expect(runs).toEqual(['1x8', '1x8', '1x8', '1x5']);
});

test('sequences that end in different chunks are judged where they end', async () => {
  const { rows, expected, runs } = await judge([8, 20, 9, 16, 1], 8);
  expect(rows).toEqual(expected);
  expect(runs).toEqual(['5x8', '1x8', '1x4', '1x1', '1x8']);
});

test('several sequences longer than a chunk are read on one by one, each from its own beginning', async () => {
  const { rows, expected, runs } = await judge([21, 17, 33], 8);
  expect(rows).toEqual(expected);
  expect(new Set(expected).size).toBe(3);
  expect(runs).toEqual(['3x8', '1x8', '1x5', '1x8', '1x1', '1x8', '1x8', '1x8', '1x1']);
});
