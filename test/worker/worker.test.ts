import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { presenceChannel } from '../../src/contract/names.js';
import { type Presence, presenceSchema } from '../../src/contract/presence.js';
import { catalogueModelSchema } from '../../src/models/catalogue.js';
import { createLogger } from '../../src/platform/logger.js';
import { createWorker } from '../../src/worker/worker.js';
import { MemoryBackplane } from '../support/memory-backplane.js';
import { engineCounters } from './support/engine-counters.js';
import { FakeEngine } from './support/fake-engine.js';
import {
  chatJob,
  chatTokenizer,
  decoderManifest,
  model,
  openWorkbench,
  rerankJob,
  type Workbench,
} from './support/workbench.js';

const end = chatTokenizer.specialToken('<|im_end|>')!;
const [a] = await chatTokenizer.encode('a');

let bench: Workbench;
beforeEach(async () => {
  bench = await openWorkbench({ maxSequences: 4 });
});
afterEach(() => bench.close());

const typesOf = (id: string) => bench.log.framesOf(id).map(({ type }) => type);
const isIdle = () => vi.waitFor(() => expect(bench.backplane.queue(model).active.size).toBe(0));

/** The presence of the worker that meets a condition; waits for it. */
function presence(isMet: (presence: Presence & { role: 'worker' }) => boolean): Promise<Presence> {
  return new Promise((resolve) => {
    void bench.backplane.channel.subscribe(presenceChannel, (message) => {
      const heard = presenceSchema.parse(JSON.parse(message));
      if (heard.role === 'worker' && isMet(heard)) resolve(heard);
    });
  });
}

describe('cancelling', () => {
  test('a running request leaves the engine and says what it cost', async () => {
    await bench.enqueue(chatJob());
    const request = await bench.engine.nextGenerate();
    bench.engine.admit(request, 2);
    bench.engine.say(request, { token: a! });
    await bench.cancel('request-1');
    expect(await bench.log.ending('request-1')).toMatchObject({
      type: 'cancelled',
      spent: { promptTokens: request.prompt.length, cachedTokens: 2, completionTokens: 1 },
    });
    expect(bench.engine.cancelled).toEqual([{ id: request.id, choice: undefined }]);
    await isIdle();
  });

  test('a request that waits in the engine has cost nothing', async () => {
    await bench.enqueue(chatJob());
    await bench.engine.nextGenerate();
    await bench.cancel('request-1');
    expect(await bench.log.ending('request-1')).toMatchObject({
      type: 'cancelled',
      spent: { promptTokens: 0, completionTokens: 0 },
      timings: { firstTokenMs: null },
    });
  });

  test('a request given up before it came never reaches the engine', async () => {
    await bench.cancel('request-1');
    await new Promise(setImmediate);
    await bench.enqueue(chatJob());
    await bench.log.ending('request-1');
    expect(typesOf('request-1')).toEqual(['started', 'cancelled']);
    await isIdle();
    expect(bench.engine.unanswered).toBe(0);
  });

  test('frees the place for the next job', async () => {
    const ids = Array.from({ length: 7 }, (_, index) => `r${index}`);
    await bench.enqueue(...ids.map((id) => chatJob({ id })));
    for (let count = 0; count < 6; count++) await bench.engine.nextGenerate();
    await bench.cancel('r0');
    await bench.engine.nextGenerate();
    expect(typesOf('r6')).toEqual(['started']);
  });

  test('events of the step under way come too late to be heard', async () => {
    await bench.enqueue(chatJob());
    const request = await bench.engine.nextGenerate();
    await bench.cancel('request-1');
    await bench.log.ending('request-1');
    bench.engine.say(request, { token: a! });
    bench.engine.say(request, { token: end, finish: 'end' });
    await new Promise(setImmediate);
    expect(typesOf('request-1')).toEqual(['started', 'cancelled']);
  });
});

describe('jobs not worth running', () => {
  test('one whose deadline has passed is told so and not run', async () => {
    await bench.enqueue(chatJob({ deadlineAt: Date.now() - 1 }));
    expect(await bench.log.ending('request-1')).toMatchObject({ type: 'failed', error: 'deadlineExceeded' });
    expect(bench.engine.unanswered).toBe(0);
  });

  test('one whose deadline passes while it runs leaves the engine', async () => {
    await bench.enqueue(chatJob({ deadlineAt: Date.now() + 30 }));
    const request = await bench.engine.nextGenerate();
    expect(await bench.log.ending('request-1')).toMatchObject({ type: 'failed', error: 'deadlineExceeded' });
    expect(bench.engine.cancelled).toEqual([{ id: request.id, choice: undefined }]);
  });

  test('one whose API process has gone is dropped without a word', async () => {
    await bench.announceApi({ leaving: false });
    await bench.announceApi({ leaving: true });
    await new Promise(setImmediate);
    await bench.enqueue(chatJob(), chatJob({ id: 'other', replyTo: 'api-2' }));
    await bench.engine.nextGenerate();
    expect(typesOf('request-1')).toEqual([]);
  });

  test('one of an API process that is back is run', async () => {
    await bench.announceApi({ leaving: false });
    await bench.announceApi({ leaving: true });
    await bench.announceApi({ leaving: false });
    await new Promise(setImmediate);
    await bench.enqueue(chatJob());
    await bench.engine.nextGenerate();
    expect(typesOf('request-1')).toEqual(['started']);
  });
});

describe('jobs that cannot be read', () => {
  test('are told so where the sender can be read', async () => {
    await bench.enqueueRaw({ ...chatJob(), n: 'many' });
    expect(await bench.log.ending('request-1')).toMatchObject({
      type: 'failed',
      error: 'internal',
      sequence: 1,
      spent: { promptTokens: 0 },
    });
  });

  test('stop nothing else', async () => {
    await bench.enqueueRaw({ nothing: 'to read' });
    await bench.enqueue(chatJob());
    await bench.engine.nextGenerate();
    expect(bench.log.frames.map(({ id }) => id)).toEqual(['request-1']);
  });

  test('are those of another operation too', async () => {
    await bench.enqueue(rerankJob());
    expect(await bench.log.ending('request-1')).toMatchObject({
      type: 'failed',
      error: 'invalidParameter',
      message: 'model: acme/model only serves chat',
    });
  });
});

test('an API process that goes takes its requests with it', async () => {
  await bench.announceApi({ leaving: false });
  const [mine] = await bench.generating(chatJob(), chatJob({ id: 'other', replyTo: 'api-2' }));
  await bench.announceApi({ leaving: true });
  await bench.engine.nextCancel();
  expect(bench.engine.cancelled.map(({ id }) => id)).toEqual([mine.id]);
  await vi.waitFor(() => expect([...bench.backplane.queue(model).active.keys()]).toEqual(['other']));
  expect(typesOf('request-1')).toEqual(['started']);
});

test('a job whose hold is lost leaves the engine in silence', async () => {
  await bench.enqueue(chatJob());
  const request = await bench.engine.nextGenerate();
  bench.backplane.queue(model).active.get('request-1')!.abort(new Error('the hold was lost'));
  await isIdle();
  expect(bench.engine.cancelled).toEqual([{ id: request.id, choice: undefined }]);
  expect(typesOf('request-1')).toEqual(['started']);
});

test('as many jobs are held as the engine has slots, and a few more', async () => {
  await bench.enqueue(...Array.from({ length: 20 }, (_, index) => chatJob({ id: `r${index}` })));
  for (let count = 0; count < 6; count++) await bench.engine.nextGenerate();
  await new Promise(setImmediate);
  expect(bench.engine.unanswered).toBe(0);
  expect(await bench.backplane.queue(model).depth()).toBe(14);
});

test('the presence tells requests held and past the engine’s queue', async () => {
  const [first] = await bench.generating(chatJob({ id: 'a' }), chatJob({ id: 'b' }));
  bench.engine.admit(first);
  const busy = presence(({ held }) => held === 2);
  expect(await busy).toMatchObject({ id: 'worker-1', model, held: 2, running: 1, leaving: false });
});

test('the presence tells what the engine counts, and does not wait for it', async () => {
  expect(await presence(() => true)).not.toHaveProperty('engine');
  bench.engine.counted.resolve(engineCounters({ waiting: 3 }));
  const told = presence(({ engine }) => engine !== undefined);
  expect(await told).toMatchObject({ engine: engineCounters({ waiting: 3 }) });
});

describe('closing', () => {
  test('takes no more jobs, and lets those held finish', async () => {
    await bench.enqueue(chatJob({ id: 'held' }));
    const request = await bench.engine.nextGenerate();
    const left = presence(({ leaving }) => leaving);
    const closed = bench.worker.close({ drainMs: 10_000 });
    await bench.enqueue(chatJob({ id: 'late' }));
    bench.engine.say(request, { token: end, finish: 'end' });
    await closed;
    expect(typesOf('held').at(-1)).toBe('done');
    expect(typesOf('late')).toEqual([]);
    expect(await left).toMatchObject({ held: 0 });
  });

  test('sends away what does not finish in time', async () => {
    await bench.enqueue(chatJob());
    const request = await bench.engine.nextGenerate();
    bench.engine.admit(request);
    await bench.worker.close({ drainMs: 5 });
    expect(await bench.log.ending('request-1')).toMatchObject({
      type: 'failed',
      error: 'overloaded',
      spent: { promptTokens: request.prompt.length },
    });
    expect(bench.engine.cancelled).toEqual([{ id: request.id, choice: undefined }]);
  });
});

describe('when the engine fails', () => {
  test('what it ran fails, what waited is told to come again, and the worker reports it', async () => {
    const [ran] = await bench.generating(chatJob({ id: 'ran' }), chatJob({ id: 'waited' }));
    bench.engine.admit(ran);
    const reason = new Error('out of memory');
    bench.engine.breakDown(reason);
    expect(await bench.worker.failed).toBe(reason);
    expect(await bench.log.ending('ran')).toMatchObject({ type: 'failed', error: 'internal' });
    expect(await bench.log.ending('waited')).toMatchObject({ type: 'failed', error: 'overloaded' });
  });

  test('no more jobs are taken', async () => {
    bench.engine.breakDown(new Error('out of memory'));
    await bench.worker.failed;
    await bench.enqueue(chatJob());
    expect(await bench.backplane.queue(model).depth()).toBe(1);
  });
});

test('a catalogue that names the wrong task is refused at the start', async () => {
  const wrong = createWorker({
    id: 'worker-2',
    config: { maxSequences: 4, lockMs: 1_000 },
    entry: catalogueModelSchema.parse({
      id: model,
      task: 'rerank',
      sources: [{ from: 'file', path: 'model' }],
    }),
    tokenizer: chatTokenizer,
    engine: new FakeEngine(decoderManifest),
    backplane: new MemoryBackplane(),
    logger: createLogger({ level: 'silent', name: 'test' }),
    clock: Date,
  });
  await expect(wrong).rejects.toThrow('acme/model: the catalogue says "rerank", but the model is a decoder');
});
