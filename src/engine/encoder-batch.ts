import type { EncoderBatch, EncoderShape } from './encoder-runner.js';
import type { EncodeRequest } from './request.js';

/** The inputs of a run over sequences, the shorter ones padded at the end. */
export function encoderBatch(
  sequences: EncodeRequest['sequences'],
  { paddingToken, firstPosition, tokenTypes }: EncoderShape,
): EncoderBatch {
  const width = Math.max(...sequences.map(({ tokens }) => tokens.length));
  const size = sequences.length * width;
  const batch = {
    rows: sequences.length,
    width,
    inputIds: new BigInt64Array(size).fill(BigInt(paddingToken)),
    attentionMask: new BigInt64Array(size),
    positionIds: new BigInt64Array(size).fill(BigInt(firstPosition)),
    tokenTypeIds: new BigInt64Array(tokenTypes ? size : 0),
  };
  for (const [row, { tokens, types }] of sequences.entries()) {
    for (let column = 0; column < tokens.length; column++) {
      const at = row * width + column;
      batch.inputIds[at] = BigInt(tokens[column]!);
      batch.attentionMask[at] = 1n;
      batch.positionIds[at] = BigInt(firstPosition + column);
      if (types && tokenTypes) batch.tokenTypeIds[at] = BigInt(types[column]!);
    }
  }
  return batch;
}
