import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OnnxSession, type Tensor } from '../../src/engine/onnx-session.js';
import { int } from '../../src/models/compile/graph.js';
import { compiledFiles, writtenOutput } from '../../src/models/manifest.js';
import { openGraph } from '../models/compile/graph-fixture.js';
import { type CompiledFixture, compileFixture } from './support/compiled-fixture.js';

let fixture: CompiledFixture;
beforeAll(async () => {
  fixture = await compileFixture('encoder/bert-cross-encoder', 'float32');
});
afterAll(() => fixture?.remove());

const graph = () => join(fixture.folder, compiledFiles.graph);

test('the processor runs a graph unless something else is named', async () => {
  for (const options of [{ threads: 1 }, { threads: 1, provider: 'cpu' } as const]) {
    const session = await OnnxSession.open(graph(), options);
    expect(session.outputNames).toEqual(['rows']);
    await session.close();
  }
});

// DirectML is of Windows, and Core ML of macOS.
test('an execution provider that the library lacks is refused with those that it has', async () => {
  const provider = process.platform === 'win32' ? 'coreml' : 'dml';
  await expect(OnnxSession.open(graph(), { threads: 1, provider })).rejects.toThrow(
    new RegExp(`^The execution provider "${provider}" cannot be used: this build of ONNX Runtime has cpu, `),
  );
});

test('an execution provider whose libraries are missing is refused, and the processor still works', async ({
  skip,
}) => {
  skip(process.platform !== 'linux', 'only the library for Linux knows TensorRT');
  const opened = await OnnxSession.open(graph(), { threads: 1, provider: 'tensorrt' }).catch(
    (error: Error) => error,
  );
  if (opened instanceof OnnxSession) await opened.close();
  skip(opened instanceof OnnxSession, 'this machine has TensorRT');
  expect((opened as Error).message).toMatch(
    /^The execution provider "tensorrt" cannot be used: it needs hardware or libraries that are not here \(.+\)$/,
  );
  await (await OnnxSession.open(graph(), { threads: 1 })).close();
});

test('a graph that is not there is no fault of the execution provider', async () => {
  await expect(OnnxSession.open('/nowhere/model.onnx', { threads: 1 })).rejects.not.toThrow(
    /execution provider/,
  );
});

describe('a graph that changes what it is given', () => {
  /** Puts `update` into `past` at `place`, and adds its numbers up. */
  const open = () =>
    openGraph((graph) => {
      const past = graph.input('past', 'float32', [1, 1, 'T', 2]);
      const update = graph.input('update', 'float32', [1, 1, 1, 2]);
      const place = graph.input('place', 'int64', [1]);
      graph.sequenceOutput(writtenOutput, graph.node('SequenceConstruct', [place]));
      const present = graph.node('TensorScatter', [past, update, place], { axis: int(-2) });
      graph.output('present', present, 'float32', [1, 1, 'T', 2]);
      graph.output('sum', graph.node('ReduceSum', [update], { keepdims: int(0) }), 'float32', []);
    });
  const floats = (numbers: readonly number[], dims: readonly number[]): Tensor => ({
    ...{ type: 'float32', data: Float32Array.from(numbers), dims },
  });
  const feeds = (past: Tensor, place: number) => ({
    past,
    update: floats([8, 9], [1, 1, 1, 2]),
    place: { type: 'int64', data: BigInt64Array.of(BigInt(place)), dims: [1] } as const,
  });
  const cache = () => floats([1, 2, 3, 4, 5, 6], [1, 1, 3, 2]);

  test('writes outputs where it is told, which may be where an input is', async () => {
    const session = await open();
    const [past, sum] = [cache(), floats([0], [])];
    await session.runInto(feeds(past, 1), { present: past, sum });
    expect([...past.data]).toEqual([1, 2, 8, 9, 5, 6]);
    expect([...sum.data]).toEqual([17]);
    const other = floats([0, 0, 0, 0, 0, 0], past.dims);
    await session.runInto(feeds(past, 2), { present: other });
    expect([...past.data]).toEqual([1, 2, 8, 9, 5, 6]);
    expect([...other.data]).toEqual([1, 2, 8, 9, 8, 9]);
  });

  test('says what went wrong', async () => {
    const session = await open();
    const past = cache();
    await expect(session.runInto(feeds(past, 3), { present: past })).rejects.toThrow(/TensorScatter/);
    expect([...past.data]).toEqual([1, 2, 3, 4, 5, 6]);
  });

  // What `runInto` rests on. If this fails, outputs may be returned without a copy, and the sequence may be of no use.
  test('a sequence is what onnxruntime-node does not return, and it returns others as copies', async () => {
    const session = await open();
    const past = cache();
    await expect(session.run(feeds(past, 1), [writtenOutput])).rejects.toThrow(/^Non tensor type/);
    const { present } = await session.run(feeds(past, 1), ['present']);
    expect([...present!.data]).toEqual([1, 2, 8, 9, 5, 6]);
    expect([...past.data]).toEqual([1, 2, 3, 4, 5, 6]);
  });
});
