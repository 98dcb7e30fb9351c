import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Engine, EngineSettings } from '../../src/engine/engine.js';
import { startEngineThread } from '../../src/engine/engine-thread.js';
import type { EngineEvent } from '../../src/engine/request.js';
import { type CompiledFixture, compileFixture, readExpected } from './support/compiled-fixture.js';
import { generateRequest, prompt, tokensOf } from './support/requests.js';
import { threadScript } from './support/thread-script.js';

let decoder: CompiledFixture;
let encoder: CompiledFixture;

beforeAll(async () => {
  decoder = await compileFixture('decoder/llama-tied', 'float32');
  encoder = await compileFixture('encoder/xlm-roberta-cross-encoder', 'float32');
});

afterAll(async () => {
  await decoder?.remove();
  await encoder?.remove();
});

function settings(folder: string): EngineSettings {
  return {
    folder,
    maxSequences: 4,
    contextLength: 512,
    kvBytes: 16 * 2 ** 20,
    maxBatchTokens: 64,
    chunkTokens: 128,
    prefixBytes: 0,
    threads: 1,
  };
}

async function start(folder: string, script = threadScript()): Promise<Engine> {
  const engine = await startEngineThread(settings(folder), { signal: new AbortController().signal, script });
  onTestFinished(() => engine.close());
  return engine;
}

/** Collects events; `until` resolves with them when one of them passes. */
function listen(engine: Engine) {
  const events: EngineEvent[] = [];
  let check = () => {};
  engine.onEvents((step) => {
    events.push(...step);
    check();
  });
  const until = (passes: (event: EngineEvent) => boolean) =>
    new Promise<EngineEvent[]>((resolve) => {
      check = () => {
        if (events.some(passes)) resolve(events);
      };
      check();
    });
  return { events, until };
}

/** A script that answers like an engine's thread, and then does what a test wants of it. */
async function scriptOf(body: string): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'headrace-thread-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'thread.mjs');
  const ready = `{ type: 'ready', manifest: ${JSON.stringify(decoder.manifest)} }`;
  await writeFile(
    path,
    `import { parentPort } from 'node:worker_threads';
     parentPort.on('message', (message) => { ${body} });
     parentPort.postMessage(${ready});`,
  );
  return pathToFileURL(path);
}

describe('an engine thread', () => {
  it('draws the tokens of the reference', async () => {
    const { cases } = await readExpected<{ cases: Array<{ prompt_ids: number[]; greedy_ids: number[] }> }>(
      'decoder/llama-tied',
    );
    const { prompt_ids, greedy_ids } = cases[0]!;
    const engine = await start(decoder.folder);
    expect(engine.manifest).toEqual(decoder.manifest);
    const { until } = listen(engine);
    engine.generate(
      generateRequest('a', { prompt: Int32Array.from(prompt_ids), maxTokens: greedy_ids.length }),
    );
    const events = await until((event) => 'finish' in event);
    expect(tokensOf(events, 'a')).toEqual(greedy_ids);
    expect(await engine.counters()).toMatchObject({ running: 0, waiting: 0, kvBytesUsed: 0, slots: 4 });
  });

  it('scores the sequences of the reference', async () => {
    const expected = await readExpected<{ input_ids: number[][]; logits: number[] }>(
      'encoder/xlm-roberta-cross-encoder',
    );
    const engine = await start(encoder.folder);
    const { until } = listen(engine);
    const sequences = expected.input_ids.map((ids) => ({ tokens: Int32Array.from(ids) }));
    engine.encode({ id: 'a', sequences, priority: 'interactive' });
    const event = (await until(({ type }) => type === 'encoded')).at(-1);
    if (event?.type !== 'encoded') throw new Error('expected rows');
    expect(event.rows).toHaveLength(sequences.length);
    for (const [index, logit] of expected.logits.entries()) expect(event.rows[index]).toBeCloseTo(logit, 3);
  });

  it('leaves the arrays of a request to their owner, also those that are parts of larger ones', async () => {
    const engine = await start(decoder.folder);
    const { until } = listen(engine);
    const whole = prompt(100);
    engine.generate(generateRequest('part', { prompt: whole.subarray(10, 20), maxTokens: 3 }));
    engine.generate(generateRequest('copy', { prompt: whole.slice(10, 20), maxTokens: 3 }));
    const events = await until((event) => event.id === 'copy' && 'finish' in event);
    expect(tokensOf(events, 'part')).toEqual(tokensOf(events, 'copy'));
    expect(whole).toEqual(prompt(100));
  });

  it('drops a cancelled request, and its counters show it', async () => {
    const engine = await start(decoder.folder);
    const { until } = listen(engine);
    engine.generate(generateRequest('a', { maxTokens: 500 }));
    await until(({ type }) => type === 'token');
    engine.cancel('a');
    await until(({ type }) => type === 'cancelled');
    expect(await engine.counters()).toMatchObject({ running: 0, kvBytesUsed: 0, cancelled: 1 });
  });

  it('refuses what its model cannot do', async () => {
    const engine = await start(decoder.folder);
    expect(() => engine.encode({ id: 'a', sequences: [], priority: 'interactive' })).toThrow(
      'A decoder cannot encode',
    );
    const other = await start(encoder.folder);
    expect(() => other.generate(generateRequest('a'))).toThrow('An encoder cannot generate');
  });

  it('closes in the middle of its work, as often as asked', async () => {
    const engine = await start(decoder.folder);
    const { until } = listen(engine);
    const failures: Error[] = [];
    engine.onFailure((error) => failures.push(error));
    engine.generate(generateRequest('a', { maxTokens: 500 }));
    await until(({ type }) => type === 'token');
    await Promise.all([engine.close(), engine.close()]);
    await engine.close();
    expect(failures).toEqual([]);
    expect(() => engine.generate(generateRequest('b'))).toThrow('The engine is closed');
    await expect(engine.counters()).rejects.toThrow('The engine is closed');
    engine.cancel('a');
  });

  it('tells of a crash, and loses what it held', async () => {
    const script = await scriptOf(`throw new Error('it broke');`);
    const engine = await start(decoder.folder, script);
    const failed = new Promise<Error>((resolve) => engine.onFailure(resolve));
    const counters = engine.counters();
    await expect(counters).rejects.toThrow('it broke');
    expect((await failed).message).toBe('it broke');
    expect(() => engine.generate(generateRequest('a'))).toThrow('it broke');
    await engine.close();
  });

  it('tells of an end that nobody asked for', async () => {
    const engine = await start(decoder.folder, await scriptOf('process.exit(3);'));
    const failed = new Promise<Error>((resolve) => engine.onFailure(resolve));
    engine.cancel('a');
    expect((await failed).message).toBe("The engine's thread ended (3)");
  });

  it('tells of a failure to whoever asks after it', async () => {
    const engine = await start(decoder.folder, await scriptOf('process.exit(3);'));
    await expect(engine.counters()).rejects.toThrow('ended (3)');
    const late: Error[] = [];
    engine.onFailure((error) => late.push(error));
    expect(late).toHaveLength(1);
  });
});

describe('the start of an engine thread', () => {
  const signal = new AbortController().signal;

  it('fails where there is no compiled model', async () => {
    const started = startEngineThread(settings(join(decoder.folder, 'nowhere')), {
      signal,
      script: threadScript(),
    });
    await expect(started).rejects.toThrow(/ENOENT.*manifest\.json/);
  });

  it('fails where the graph is broken', async () => {
    const fixture = await compileFixture('decoder/llama-tied', 'float32');
    onTestFinished(() => fixture.remove());
    await writeFile(join(fixture.folder, 'model.onnx'), 'not a graph');
    const started = startEngineThread(settings(fixture.folder), { signal, script: threadScript() });
    await expect(started).rejects.toThrow(/model\.onnx/);
  });

  it('fails when the thread ends before its model is loaded', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'headrace-thread-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const script = pathToFileURL(join(folder, 'thread.mjs'));
    await writeFile(script, 'process.exit(0);');
    await expect(startEngineThread(settings(folder), { signal, script })).rejects.toThrow(
      'The engine ended before its model was loaded',
    );
  });

  it('is given up when its signal aborts', async () => {
    const controller = new AbortController();
    const started = startEngineThread(settings(decoder.folder), {
      signal: controller.signal,
      script: threadScript(),
    });
    controller.abort(new Error('no longer wanted'));
    await expect(started).rejects.toThrow('no longer wanted');
  });
});
