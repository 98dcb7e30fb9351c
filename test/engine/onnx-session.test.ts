import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { OnnxSession } from '../../src/engine/onnx-session.js';
import { compiledFiles } from '../../src/models/manifest.js';
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
