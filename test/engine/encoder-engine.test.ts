import { describe, expect, it } from 'vitest';
import { EncoderEngine, type EncoderEngineSettings } from '../../src/engine/encoder-engine.js';
import type { EncodeRequest, EngineEvent } from '../../src/engine/request.js';
import { FakeEncoderRunner, fakeRow } from './support/fake-encoder-runner.js';
import { drain, prompt } from './support/requests.js';

function build(settings: Partial<EncoderEngineSettings> = {}, runner = new FakeEncoderRunner()) {
  return {
    runner,
    engine: new EncoderEngine(runner, { contextLength: 200, maxBatchTokens: 200, ...settings }),
  };
}

function encodeRequest(
  id: string,
  lengths: readonly number[],
  priority: EncodeRequest['priority'] = 'interactive',
): EncodeRequest {
  const sequences = lengths.map((length, index) => ({
    tokens: prompt(length, index + lengths.length),
    types: Int32Array.from({ length }, (_, at) => (2 * at > length ? 1 : 0)),
  }));
  return { id, sequences, priority };
}

function expected({ sequences }: EncodeRequest): number[] {
  return sequences.flatMap(({ tokens, types }) => fakeRow(tokens, types));
}

function rowsOf(events: readonly EngineEvent[], id: string): number[] {
  return events.flatMap((event) => (event.type === 'encoded' && event.id === id ? [...event.rows] : []));
}

/** Ids of the requests that ended, in order. */
function ended(events: readonly EngineEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'encoded' ? [event.id] : []));
}

describe('EncoderEngine', () => {
  it('returns the rows in the order of the sequences, whatever their lengths', async () => {
    const { engine } = build();
    const request = encodeRequest('a', [3, 50, 7, 20, 1, 48, 20, 200]);
    engine.encode(request);
    expect(rowsOf(await drain(engine), 'a')).toEqual(expected(request));
  });

  it('returns each of many requests its own rows, once', async () => {
    const { engine } = build();
    const requests = Array.from({ length: 12 }, (_, index) =>
      encodeRequest(
        `r${index}`,
        Array.from({ length: 1 + ((index * 5) % 17) }, (_, at) => 1 + ((at * 31 + index * 7) % 90)),
        index % 4 === 3 ? 'batch' : 'interactive',
      ),
    );
    for (const request of requests) engine.encode(request);
    const events = await drain(engine);
    for (const request of requests) expect(rowsOf(events, request.id), request.id).toEqual(expected(request));
    expect(ended(events)).toHaveLength(12);
    expect(events.filter(({ type }) => type === 'admitted')).toHaveLength(12);
  });

  it('runs sequences of like length together, within the token budget', async () => {
    const { engine, runner } = build();
    engine.encode(encodeRequest('a', [10, 90, 11, 95, 12, 100, 100]));
    await drain(engine);
    expect(runner.batches.map(({ rows, width }) => [rows, width])).toEqual([
      [2, 100],
      [2, 95],
      [3, 12],
    ]);
  });

  it('runs like sequences of different requests together', async () => {
    const { engine, runner } = build();
    for (const id of ['a', 'b', 'c']) engine.encode(encodeRequest(id, [20, 22]));
    await drain(engine);
    expect(runner.batches.map(({ rows }) => rows)).toEqual([6]);
  });

  it('runs a sequence alone that is longer than the budget', async () => {
    const { engine, runner } = build({ maxBatchTokens: 50 });
    const request = encodeRequest('a', [120, 120]);
    engine.encode(request);
    expect(rowsOf(await drain(engine), 'a')).toEqual(expected(request));
    expect(runner.batches.map(({ rows, width }) => [rows, width])).toEqual([
      [1, 120],
      [1, 120],
    ]);
  });

  it('splits a request larger than one batch', async () => {
    const { engine, runner } = build();
    const request = encodeRequest('a', new Array(40).fill(100));
    engine.encode(request);
    expect(rowsOf(await drain(engine), 'a')).toEqual(expected(request));
    expect(runner.batches).toHaveLength(20);
    for (const { rows, width } of runner.batches) expect(rows * width).toBeLessThanOrEqual(200);
  });

  it('a small request that comes while a batch of a large one runs is in the next batch', async () => {
    const { engine, runner } = build();
    engine.encode(encodeRequest('large', new Array(40).fill(100)));
    await engine.step();
    runner.onRun = ({ width }) => {
      if (width === 100 && runner.batches.length === 2) engine.encode(encodeRequest('small', [10]));
    };
    await engine.step();
    expect(ended(await engine.step())).toEqual(['small']);
    expect(runner.batches.map(({ width }) => width)).toEqual([100, 100, 10]);
  });

  it('a small request of unlike sequences is not interrupted by a large one', async () => {
    const { engine, runner } = build();
    engine.encode(encodeRequest('large', new Array(40).fill(100)));
    await engine.step();
    engine.encode(encodeRequest('small', [80, 30, 5]));
    await engine.step();
    await engine.step();
    expect(ended(await engine.step())).toEqual(['small']);
    expect(runner.batches.map(({ width }) => width)).toEqual([100, 80, 30, 5]);
  });

  it('large requests take turns, a full batch each', async () => {
    const { engine, runner } = build();
    engine.encode(encodeRequest('a', new Array(6).fill(100)));
    engine.encode(encodeRequest('b', new Array(9).fill(60)));
    await drain(engine);
    expect(runner.batches.map(({ rows, width }) => [rows, width])).toEqual([
      [2, 100],
      [3, 60],
      [2, 100],
      [3, 60],
      [2, 100],
      [3, 60],
    ]);
  });

  it('a request that keeps coming back does not keep the others waiting', async () => {
    const { engine } = build();
    engine.encode(encodeRequest('a', new Array(4).fill(100)));
    engine.encode(encodeRequest('b', new Array(4).fill(100)));
    const events: EngineEvent[] = [];
    for (let round = 0; round < 8; round++) {
      engine.encode(encodeRequest(`small ${round}`, [10]));
      events.push(...(await engine.step()));
    }
    expect(ended(events)).toEqual(expect.arrayContaining(['a', 'b']));
  });

  it('interactive requests go before batch requests', async () => {
    const { engine } = build();
    engine.encode(encodeRequest('batch', [100, 100, 100], 'batch'));
    engine.encode(encodeRequest('chat', [10, 10]));
    expect(ended(await drain(engine))).toEqual(['chat', 'batch']);
  });

  it('an interactive request ends the turn of a batch request', async () => {
    const { engine, runner } = build();
    engine.encode(encodeRequest('batch', [80, 30, 5], 'batch'));
    await engine.step();
    engine.encode(encodeRequest('chat', [60]));
    await drain(engine);
    expect(runner.batches.map(({ width }) => width)).toEqual([80, 60, 30, 5]);
  });

  it('a cancelled request gives up its turn', async () => {
    const { engine, runner } = build();
    engine.encode(encodeRequest('a', [80, 30, 5]));
    engine.encode(encodeRequest('b', [50]));
    await engine.step();
    engine.cancel('a');
    await drain(engine);
    expect(runner.batches.map(({ width }) => width)).toEqual([80, 50]);
  });

  it('pads with the padding token and starts positions where the model does', async () => {
    const { engine, runner } = build();
    engine.encode(encodeRequest('a', [4, 3]));
    await drain(engine);
    const batch = runner.batches[0]!;
    expect([...batch.attentionMask]).toEqual([1n, 1n, 1n, 1n, 1n, 1n, 1n, 0n]);
    expect([...batch.positionIds.subarray(0, 4)]).toEqual([2n, 3n, 4n, 5n]);
    expect(batch.inputIds[7]).toBe(1n);
    expect(batch.tokenTypeIds).toHaveLength(8);
  });

  it('gives no token types to a model without them', async () => {
    const runner = new FakeEncoderRunner({ tokenTypes: false });
    const { engine } = build({}, runner);
    const sequences = [{ tokens: Int32Array.of(4, 5) }];
    engine.encode({ id: 'a', sequences, priority: 'interactive' });
    expect(rowsOf(await drain(engine), 'a')).toEqual(fakeRow([4, 5]));
    expect(runner.batches[0]!.tokenTypeIds).toHaveLength(0);
  });

  it('a cancelled request runs no further batch', async () => {
    const { engine, runner } = build();
    engine.encode(encodeRequest('a', new Array(10).fill(100)));
    await engine.step();
    expect(engine.counters().running).toBe(1);
    engine.cancel('a');
    expect(await engine.step()).toEqual([{ type: 'cancelled', id: 'a' }]);
    expect(engine.counters()).toMatchObject({ running: 0, cancelled: 1, encodedTokens: 200 });
    expect(runner.batches).toHaveLength(1);
    expect(engine.busy).toBe(false);
  });

  it('a failed run fails the requests in it, and the others go on', async () => {
    const { engine, runner } = build();
    const fine = encodeRequest('fine', [10, 11]);
    engine.encode(encodeRequest('bad', [100, 100, 100, 100]));
    engine.encode(fine);
    runner.onRun = ({ width }) => {
      if (width === 100) throw new Error('out of memory');
    };
    const events = await drain(engine);
    expect(events.filter(({ type }) => type === 'failed')).toEqual([
      { type: 'failed', id: 'bad', reason: 'the model failed to run: out of memory' },
    ]);
    expect(rowsOf(events, 'fine')).toEqual(expected(fine));
    expect(runner.batches).toHaveLength(2);
  });

  it('gives up when every run fails', async () => {
    const { engine, runner } = build();
    for (const length of [10, 50, 100]) engine.encode(encodeRequest(`r${length}`, [length]));
    runner.onRun = () => {
      throw new Error('device lost');
    };
    await expect(drain(engine)).rejects.toThrow('The model failed 3 runs in a row');
  });

  const refused: ReadonlyArray<readonly [string, EncodeRequest['sequences'], RegExp]> = [
    ['no sequence', [], /no sequence/],
    ['an empty sequence', [{ tokens: new Int32Array(0), types: new Int32Array(0) }], /sequence 0 is empty/],
    [
      'a sequence beyond the context',
      [{ tokens: new Int32Array(201), types: new Int32Array(201) }],
      /has 201 tokens, and the context 200/,
    ],
    ['missing token types', [{ tokens: Int32Array.of(1) }], /needs a type for each token/],
    ['a strange token', [{ tokens: Int32Array.of(100), types: Int32Array.of(0) }], /token 100 is not in/],
  ];
  for (const [title, sequences, reason] of refused) {
    it(`refuses ${title}`, async () => {
      const { engine, runner } = build();
      engine.encode({ id: 'a', sequences, priority: 'interactive' });
      expect(await drain(engine)).toEqual([
        { type: 'failed', id: 'a', reason: expect.stringMatching(reason) },
      ]);
      expect(runner.batches).toHaveLength(0);
    });
  }
});
