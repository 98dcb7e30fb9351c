import type { EncoderBatch, EncoderRunner, EncoderShape } from '../../../src/engine/encoder-runner.js';

/**
 * An encoder whose rows are functions of exactly the tokens, types and positions that the attention mask shows:
 * [sum of tokens weighed by place, number of tokens].
 */
export class FakeEncoderRunner implements EncoderRunner {
  readonly shape: EncoderShape;
  readonly batches: EncoderBatch[] = [];
  onRun: (batch: EncoderBatch) => void = () => {};

  constructor(shape: Partial<EncoderShape> = {}) {
    this.shape = {
      dimension: 2,
      vocabularySize: 100,
      paddingToken: 1,
      firstPosition: 2,
      tokenTypes: true,
      ...shape,
    };
  }

  async run(batch: EncoderBatch): Promise<Float32Array> {
    this.batches.push(batch);
    this.onRun(batch);
    const { rows, width } = batch;
    const output = new Float32Array(rows * 2);
    for (let row = 0; row < rows; row++) {
      const seen = Array.from({ length: width }, (_, column) => row * width + column).filter(
        (at) => batch.attentionMask[at] === 1n,
      );
      const tokens = seen.map((at) => Number(batch.inputIds[at]));
      const types = this.shape.tokenTypes ? seen.map((at) => Number(batch.tokenTypeIds[at])) : undefined;
      const positions = seen.map((at) => Number(batch.positionIds[at]) - this.shape.firstPosition);
      output.set(fakeRow(tokens, types, positions), row * 2);
    }
    return output;
  }

  async close(): Promise<void> {}
}

/** The row of one sequence, without any engine. */
export function fakeRow(
  tokens: ArrayLike<number>,
  types?: ArrayLike<number>,
  positions: ArrayLike<number> = Array.from(tokens, (_, index) => index),
): [number, number] {
  let sum = 0;
  for (let index = 0; index < tokens.length; index++) {
    sum += (tokens[index]! + 0.5 * (types?.[index] ?? 0)) * (positions[index]! + 1);
  }
  return [sum, tokens.length];
}
