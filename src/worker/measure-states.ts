import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import * as engine from '../engine/measure-states.js';
import type { MeasuredGraph, StateRange } from '../models/compile/measure-states.js';
import { packagePath } from '../platform/package-root.js';
import { Tokenizer } from './tokenizer.js';

/** Tokens of a sequence. Many short ones: what begins a sequence often has keys of its own size. */
const sequenceTokens = 128;

/**
 * Finds how large a decoder's keys and values become: on a text of prose, code, tables and several scripts, and on tokens
 * from all over its vocabulary, so that control tokens are among them.
 */
export async function measureStates(measured: MeasuredGraph): Promise<StateRange[]> {
  const { path, tokenizerJson, manifest, signal } = measured;
  const tokenizer = new Tokenizer(tokenizerJson);
  const text = await readFile(packagePath('calibration', 'mixed.txt'), 'utf8');
  const size = Math.min(sequenceTokens, manifest.contextLength);
  const begin = tokenizer.tokensBefore();
  const sequences = [...pieces(await tokenizer.encode(text), size - begin.length)].map((piece) =>
    Int32Array.from([...begin, ...piece]),
  );
  return engine.measureStates({
    graph: path,
    shape: manifest,
    sequences: [...sequences, spread(manifest.vocabularySize, size)],
    threads: availableParallelism(),
    signal,
  });
}

function* pieces(tokens: Int32Array, size: number): Generator<Int32Array> {
  for (let from = 0; from < tokens.length; from += size) yield tokens.subarray(from, from + size);
}

/** `count` tokens at even distances from the first to the last one. */
function spread(vocabularySize: number, count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, at) => Math.floor((at * (vocabularySize - 1)) / (count - 1)));
}
