import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { measureDecoder, measureEncoder } from '../engine/measure-states.js';
import type { Measured, MeasuredGraph } from '../models/compile/measure-states.js';
import { packagePath } from '../platform/package-root.js';
import { Tokenizer } from './tokenizer.js';

/** Tokens of a sequence. Many short ones: what begins a sequence often has keys of its own size. */
const sequenceTokens = 128;

/**
 * Finds how large a model's numbers become where it rounds them: on a text of prose, code, tables and several scripts,
 * and on tokens from all over its vocabulary, so that control tokens are among them. Cross-encoders read it in pairs.
 */
export async function measureStates(measured: MeasuredGraph): Promise<Measured> {
  const { path: graph, tokenizerJson, manifest, signal } = measured;
  const tokenizer = new Tokenizer(tokenizerJson);
  const text = await tokenizer.encode(await readFile(packagePath('calibration', 'mixed.txt'), 'utf8'));
  const size = Math.min(sequenceTokens, manifest.contextLength);
  const others = spread(manifest.vocabularySize, size);
  const common = { graph, threads: availableParallelism(), signal };
  if (manifest.kind === 'decoder') {
    const begin = tokenizer.tokensBefore();
    const sequences = [...pieces(text, size - begin.length)].map((piece) =>
      Int32Array.from([...begin, ...piece]),
    );
    return measureDecoder({ ...common, shape: manifest, sequences: [...sequences, others] });
  }
  const { format } = tokenizer;
  const isPair = manifest.scoring === 'cross-encoder';
  const room = size - (isPair ? format.pairOverhead : format.singleOverhead);
  const sequences = [...pieces(text, room), others.subarray(0, room)].map((piece) => {
    const first = Math.floor(piece.length / 4);
    return isPair ? format.pair(piece.subarray(0, first), piece.subarray(first)) : format.single(piece);
  });
  return measureEncoder({ ...common, shape: manifest, sequences });
}

function* pieces(tokens: Int32Array, size: number): Generator<Int32Array> {
  for (let from = 0; from < tokens.length; from += size) yield tokens.subarray(from, from + size);
}

/** `count` tokens at even distances from the first to the last one. */
function spread(vocabularySize: number, count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, at) => Math.floor((at * (vocabularySize - 1)) / (count - 1)));
}
