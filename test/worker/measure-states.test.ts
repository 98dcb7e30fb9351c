import { readFile } from 'node:fs/promises';
import { expect, test, vi } from 'vitest';
import * as engine from '../../src/engine/measure-states.js';
import { compileModel } from '../../src/models/compile/compile-model.js';
import type { MeasuredGraph, StateRange } from '../../src/models/compile/measure-states.js';
import type { DecoderManifest, EncoderManifest, Manifest } from '../../src/models/manifest.js';
import { packagePath } from '../../src/platform/package-root.js';
import { measureStates } from '../../src/worker/measure-states.js';
import { Tokenizer } from '../../src/worker/tokenizer.js';
import { openFixture } from '../models/compile/compiled-fixture.js';
import { temporaryFolder } from '../models/temporary-folder.js';

vi.mock('../../src/engine/measure-states.js', async (original) => {
  const real = await original<typeof engine>();
  return {
    ...real,
    measureDecoder: vi.fn(real.measureDecoder),
    measureEncoder: vi.fn(real.measureEncoder),
  };
});

/** What is done with the graph of a fixture that is to be measured, while there is one. */
async function measured<T, Kind extends Manifest = DecoderManifest>(
  name: string,
  use: (graph: MeasuredGraph & { readonly manifest: Kind }) => Promise<T>,
): Promise<T> {
  let result: Promise<T> | undefined;
  const compiling = compileModel({
    checkpoint: await openFixture(name),
    weights: 'int8',
    folder: await temporaryFolder(),
    async measureStates(graph) {
      result = use(graph as MeasuredGraph & { readonly manifest: Kind });
      await result.catch(() => {});
      return await measureStates(graph);
    },
  });
  await compiling;
  return await result!;
}

/** The sequences that the last measuring ran. */
const sequences = () => vi.mocked(engine.measureDecoder).mock.lastCall![0].sequences;

/** The same tokenizer, with a control token before every text. */
function beginning(tokenizerJson: string, content: string): string {
  const file = JSON.parse(tokenizerJson);
  const { id } = file.added_tokens.find((token: { content: string }) => token.content === content);
  const single = [{ SpecialToken: { id: content, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }];
  const special_tokens = { [content]: { id: content, ids: [id], tokens: [content] } };
  return JSON.stringify({ ...file, post_processor: { ...file.post_processor, single, special_tokens } });
}

test.each([
  ['where nothing begins a text', (json: string) => json, []],
  ['each behind what begins a text', (json: string) => beginning(json, '<|im_start|>'), [1]],
])('the whole text is run in pieces, %s', async (_, tokenizerOf, begin) => {
  await measured('decoder/llama-tied', async (graph) => {
    const tokenizerJson = tokenizerOf(graph.tokenizerJson);
    await measureStates({ ...graph, tokenizerJson });
    const tokenizer = new Tokenizer(tokenizerJson);
    const pieces = sequences().slice(0, -1);
    expect(pieces.length).toBeGreaterThan(5);
    const text = await tokenizer.encode(await readFile(packagePath('calibration', 'mixed.txt'), 'utf8'));
    expect(pieces.flatMap((piece) => [...piece.subarray(begin.length)])).toEqual([...text]);
    for (const piece of pieces) {
      expect([...piece.subarray(0, begin.length)]).toEqual(begin);
      expect(piece.length).toBeLessThanOrEqual(128);
    }
  });
});

test('a context that is shorter than a piece makes the pieces shorter', async () => {
  await measured('decoder/llama-tied', async (graph) => {
    await measureStates({ ...graph, manifest: { ...graph.manifest, contextLength: 20 } });
    expect(Math.max(...sequences().map(({ length }) => length))).toBe(20);
  });
});

test('tokens from all over the vocabulary are run too, the first and the last among them', async () => {
  await measured('decoder/llama-tied', async (graph) => {
    await measureStates(graph);
    const spread = [...sequences().at(-1)!];
    expect(spread[0]).toBe(0);
    expect(spread.at(-1)).toBe(graph.manifest.vocabularySize - 1);
    expect(new Set(spread).size).toBe(spread.length);
    const steps = spread.slice(1).map((token, at) => token - spread[at]!);
    expect(Math.max(...steps) - Math.min(...steps)).toBeLessThanOrEqual(1);
  });
});

test.each(['llama-tied', 'llama3-rope', 'qwen2-bias', 'qwen3-qknorm'])(
  'the states of %s are measured, and those of another text stay near their ranges',
  async (name) => {
    await measured(`decoder/${name}`, async (graph) => {
      const { layers, heads, kvHeads, headSize } = graph.manifest;
      const { states: ranges, rows } = await measureStates(graph);
      const tokens = await new Tokenizer(graph.tokenizerJson).encode(
        'Two millers and 31 geese crossed the river; nobody had asked the ferryman.',
      );
      const { path, manifest: shape } = graph;
      const sequence = { graph: path, shape, sequences: [tokens], threads: 1 };
      const { states: others } = await engine.measureDecoder(sequence);
      expect(ranges).toHaveLength(layers);
      const widths = { key: kvHeads, value: kvHeads, mixed: heads };
      for (const [layer, range] of ranges.entries()) {
        for (const [part, count] of Object.entries(widths) as [keyof StateRange, number][]) {
          expect(range[part]).toHaveLength(count * headSize);
          expect(Math.min(...range[part])).toBeGreaterThan(0);
          expect(Math.max(...others[layer]![part])).toBeLessThan(1.3 * Math.max(...range[part]));
        }
      }
      // Of the last layer only the last rows of sequences are left: it is not measured.
      const projected = ranges.slice(0, -1).map((_, layer) => `model.layers.${layer}.down`);
      expect([...rows.keys()]).toEqual(projected);
      for (const numbers of rows.values()) expect(Math.min(...numbers)).toBeGreaterThan(0);
    });
  },
);

test.each([
  ['bert-bi-encoder', 1],
  ['bert-cross-encoder', 2],
  ['xlm-roberta-cross-encoder', 2],
])('the whole text is run through %s, %i texts to a sequence', async (name, texts) => {
  await measured<void, EncoderManifest>(`encoder/${name}`, async (graph) => {
    const { rows } = await measureStates(graph);
    expect(rows.size % 4).toBe(0);
    expect(rows.size).toBeGreaterThan(0);
    for (const numbers of rows.values()) expect(Math.min(...numbers)).toBeGreaterThan(0);
    const tokenizer = new Tokenizer(graph.tokenizerJson);
    const overhead = texts === 1 ? tokenizer.format.singleOverhead : tokenizer.format.pairOverhead;
    const text = await tokenizer.encode(await readFile(packagePath('calibration', 'mixed.txt'), 'utf8'));
    const { sequences: run } = vi.mocked(engine.measureEncoder).mock.lastCall![0];
    const count = run.slice(0, -1).reduce((sum, { tokens }) => sum + tokens.length - overhead, 0);
    expect(count).toBe(text.length);
    for (const { tokens } of run) expect(tokens.length).toBeLessThanOrEqual(graph.manifest.contextLength);
    expect([...rows.values()][0]!.length).toBe(run.reduce((sum, { tokens }) => sum + tokens.length, 0));
  });
});

test('an abort ends it with the reason', async () => {
  await measured('decoder/llama-tied', async (graph) => {
    const signal = AbortSignal.abort(new Error('not wanted any more'));
    await expect(measureStates({ ...graph, signal })).rejects.toThrow('not wanted any more');
  });
});
