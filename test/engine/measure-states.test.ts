import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import type { DecoderShape } from '../../src/engine/decoder-runner.js';
import { measureDecoder, measureEncoder } from '../../src/engine/measure-states.js';
import { ExternalData } from '../../src/models/compile/external-data.js';
import { Graph, int } from '../../src/models/compile/graph.js';
import { temporaryFolder } from '../models/temporary-folder.js';

const shape: DecoderShape = {
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 4,
  vocabularySize: 10,
  kvFormat: 'int8',
  decodeWidth: 1,
};
const parts = ['key', 'value', 'mixed'] as const;
const widthOf = (part: (typeof parts)[number]) =>
  (part === 'mixed' ? shape.heads : shape.kvHeads) * shape.headSize;

/** What a part of a layer is for each token, by element: positive and negative numbers without a pattern. */
const table = (part: (typeof parts)[number], layer: number) =>
  Float32Array.from(
    { length: shape.vocabularySize * widthOf(part) },
    (_, at) => Math.sin((at + 1) * (at + 3 * layer + 5 * parts.indexOf(part))) * (at % 7),
  );

let path: string;

/** A graph with a decoder's inputs whose states are those of the tables. */
beforeEach(async () => {
  const folder = await temporaryFolder();
  const data = await ExternalData.create(join(folder, 'weights'));
  const graph = new Graph(data, 'weights');
  const ids = graph.input('input_ids', 'int64', ['B', 'S']);
  graph.input('lengths', 'int32', ['B']);
  graph.input('longest', 'int32', [1]);
  graph.input('wanted', 'int64', ['W']);
  graph.input('top', 'int64', [1]);
  for (let layer = 0; layer < shape.layers; layer++) {
    graph.input(`past.${layer}.key`, 'int8', ['B', shape.kvHeads, 'T', shape.headSize]);
    graph.input(`past.${layer}.value`, 'int8', ['B', shape.kvHeads, 'T', shape.headSize]);
    for (const part of parts) {
      const name = `${part}.${layer}`;
      const dims = [shape.vocabularySize, widthOf(part)];
      const rows = graph.node('Gather', [await graph.weight(`table.${name}`, dims, table(part, layer)), ids]);
      graph.output(name, rows, 'float32', ['B', 'S', widthOf(part)]);
    }
  }
  const numbers = graph.node('Reshape', [graph.node('Cast', [ids], { to: int(1) }), graph.shape(-1, 1)]);
  graph.output('rows.layer 1', numbers, 'float32', ['R', 1]);
  await data.close();
  path = join(folder, 'graph.onnx');
  await writeFile(path, graph.encode());
});

test('ranges are how far each element reaches, by layer, over all sequences', async () => {
  const sequences = [Int32Array.of(1, 4, 4), Int32Array.of(7), Int32Array.of(2, 1)];
  const { states: ranges, rows } = await measureDecoder({ graph: path, shape, sequences, threads: 1 });
  expect([...rows]).toEqual([['layer 1', Float32Array.of(1, 4, 4, 7, 2, 1)]]);
  expect(ranges).toHaveLength(shape.layers);
  for (const [layer, range] of ranges.entries()) {
    expect(Object.keys(range).sort()).toEqual([...parts].sort());
    for (const part of parts) {
      const numbers = table(part, layer);
      const width = widthOf(part);
      const isTurned = part === 'key';
      const reach = (token: number, element: number) => {
        const other = element % 4 < 2 ? element + 2 : element - 2;
        const [own, partner] = [element, other].map((place) => numbers[token * width + place]!);
        return isTurned ? Math.sqrt(own! ** 2 + partner! ** 2) : Math.abs(own!);
      };
      const expected = Float32Array.from({ length: width }, (_, element) =>
        Math.max(...[1, 2, 4, 7].map((token) => reach(token, element))),
      );
      expect(range[part], `${part} of layer ${layer}`).toEqual(expected);
    }
  }
});

test('an abort between two sequences ends it with the reason', async () => {
  const controller = new AbortController();
  function* sequences() {
    yield Int32Array.of(1);
    controller.abort(new Error('not wanted any more'));
    yield Int32Array.of(2);
    throw new Error('went on');
  }
  const measuring = measureDecoder({
    graph: path,
    shape,
    sequences: { [Symbol.iterator]: sequences } as unknown as readonly Int32Array[],
    threads: 1,
    signal: controller.signal,
  });
  await expect(measuring).rejects.toThrow('not wanted any more');
});

test('an abort has a turn while sequences are run', async () => {
  const controller = new AbortController();
  const sequences = Array.from({ length: 10_000 }, () => Int32Array.of(1, 2, 3));
  const measuring = measureDecoder({ graph: path, shape, sequences, threads: 1, signal: controller.signal });
  setImmediate(() => controller.abort(new Error('Ctrl-C')));
  await expect(measuring).rejects.toThrow('Ctrl-C');
});

test('a graph that cannot be opened is an error', async () => {
  const measuring = measureDecoder({ graph: `${path}.gone`, shape, sequences: [], threads: 1 });
  await expect(measuring).rejects.toThrow(/graph\.onnx\.gone/);
});

test('rows of an encoder are measured over all sequences, each with its types and positions', async () => {
  const folder = await temporaryFolder();
  const data = await ExternalData.create(join(folder, 'weights'));
  const graph = new Graph(data, 'weights');
  const inputs = ['input_ids', 'attention_mask', 'position_ids', 'token_type_ids'].map((name) =>
    graph.input(name, 'int64', ['B', 'S']),
  );
  // One number of which each input is a digit.
  const sum = inputs
    .map((input, digit) => graph.node('Mul', [input, graph.integer(10 ** digit)]))
    .reduce((total, part) => graph.node('Add', [total, part]));
  const rows = graph.node('Reshape', [graph.node('Cast', [sum], { to: int(1) }), graph.shape(-1, 1)]);
  graph.output('rows.layer 0', rows, 'float32', ['R', 1]);
  await data.close();
  const file = join(folder, 'encoder.onnx');
  await writeFile(file, graph.encode());
  const measured = await measureEncoder({
    graph: file,
    shape: { dimension: 1, vocabularySize: 10, paddingToken: 0, firstPosition: 2, tokenTypes: true },
    sequences: [
      { tokens: Int32Array.of(4, 5), types: Int32Array.of(0, 1) },
      { tokens: Int32Array.of(9), types: Int32Array.of(0) },
    ],
    threads: 1,
  });
  expect(measured.states).toEqual([]);
  expect([...measured.rows]).toEqual([['layer 0', Float32Array.of(214, 1315, 219)]]);
});
