import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { DecoderEngine } from '../../src/engine/decoder-engine.js';
import { EngineLoop } from '../../src/engine/engine-loop.js';
import type { EngineEvent } from '../../src/engine/request.js';
import { FakeDecoderRunner } from './support/fake-decoder-runner.js';
import { generateRequest, tokensOf } from './support/requests.js';

function build() {
  const runner = new FakeDecoderRunner();
  const settings = {
    maxSequences: 4,
    contextLength: 200,
    kvBytes: 1_000_000,
    maxBatchTokens: 64,
    chunkTokens: 64,
    prefixBytes: 0,
  };
  const engine = new DecoderEngine(runner, settings);
  const steps: Array<readonly EngineEvent[]> = [];
  const failures: unknown[] = [];
  let noticed = () => {};
  const loop = new EngineLoop(engine, {
    onEvents: (events) => {
      steps.push(events);
      noticed();
    },
    onFailure: (error) => {
      failures.push(error);
      noticed();
    },
  });
  const until = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      noticed = () => {
        if (condition()) resolve();
      };
      noticed();
    });
  return { runner, engine, loop, steps, failures, until };
}

describe('EngineLoop', () => {
  it('steps until there is nothing left to do, and wakes for more', async () => {
    const { engine, loop, steps, until } = build();
    for (const id of ['a', 'b']) {
      engine.generate(generateRequest(id, { maxTokens: 3 }));
      loop.wake();
      await until(() => steps.flat().some((event) => event.id === id && 'finish' in event));
    }
    expect(tokensOf(steps.flat(), 'a')).toHaveLength(3);
    expect(tokensOf(steps.flat(), 'b')).toHaveLength(3);
  });

  it('delivers the events of one step together', async () => {
    const { engine, loop, steps, until } = build();
    for (const id of ['a', 'b', 'c']) engine.generate(generateRequest(id, { maxTokens: 2 }));
    loop.wake();
    await until(() => steps.length === 2);
    expect(steps.map((events) => events.length)).toEqual([6, 3]);
  });

  it('lets the event loop turn between steps, so that a cancellation is seen by the next', async () => {
    const { engine, loop, steps, runner, until } = build();
    engine.generate(generateRequest('a', { maxTokens: 100 }));
    loop.wake();
    await until(() => steps.length === 1);
    setImmediate().then(() => engine.cancel('a'), expect.fail);
    await until(() => steps.flat().some(({ type }) => type === 'cancelled'));
    expect(runner.runs.length).toBeLessThanOrEqual(3);
  });

  it('closes after the step that is under way', async () => {
    const { engine, loop, runner, until, steps } = build();
    engine.generate(generateRequest('a', { maxTokens: 100 }));
    loop.wake();
    await until(() => steps.length === 2);
    await loop.close();
    const runs = runner.runs.length;
    loop.wake();
    await loop.close();
    expect(runner.runs).toHaveLength(runs);
    expect(engine.busy).toBe(true);
  });

  it('ends with the failure of the engine', async () => {
    const { engine, loop, runner, failures, until } = build();
    runner.onRun = () => {
      throw new Error('device lost');
    };
    for (const [id, length] of [
      ['a', 64],
      ['b', 63],
      ['c', 62],
    ] as const) {
      engine.generate(generateRequest(id, { prompt: new Int32Array(length) }));
    }
    loop.wake();
    await until(() => failures.length > 0);
    expect(failures).toEqual([expect.objectContaining({ message: 'The model failed 3 runs in a row' })]);
  });
});
