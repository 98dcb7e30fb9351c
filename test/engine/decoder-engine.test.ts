import { describe, expect, it } from 'vitest';
import { DecoderEngine, type DecoderEngineSettings } from '../../src/engine/decoder-engine.js';
import { bytesPerPosition } from '../../src/engine/kv-cache.js';
import { Random } from '../../src/engine/random.js';
import type { EngineEvent, GenerateRequest } from '../../src/engine/request.js';
import { FakeDecoderRunner, fakeGreedy, fakeLogits, fakeShape } from './support/fake-decoder-runner.js';
import { alone, drain, generateRequest, greedy, prompt, tokensOf } from './support/requests.js';

const position = bytesPerPosition(fakeShape);

function build(settings: Partial<DecoderEngineSettings> = {}) {
  const runner = new FakeDecoderRunner();
  const engine = new DecoderEngine(runner, {
    maxSequences: 8,
    contextLength: 256,
    kvBytes: 1_000_000,
    maxBatchTokens: 64,
    chunkTokens: settings.maxBatchTokens ?? 64,
    prefixBytes: 0,
    ...settings,
  });
  return { runner, engine };
}

/** Twenty requests of different lengths, priorities and ways to draw, some with several choices. */
function mixedRequests(): GenerateRequest[] {
  return Array.from({ length: 20 }, (_, index) =>
    generateRequest(`r${index}`, {
      prompt: prompt(1 + ((index * 37) % 90), index),
      maxTokens: 1 + ((index * 13) % 40),
      choices: index % 5 === 4 ? 3 : 1,
      priority: index % 3 === 2 ? 'batch' : 'interactive',
      endTokens: [index],
      sampling:
        index % 2 === 0
          ? greedy
          : { ...greedy, temperature: 0.3, topK: 20, topP: 0.9, frequencyPenalty: 0.1, seed: index },
    }),
  );
}

describe('prompts that begin alike', () => {
  const common = prompt(70, 9);
  const like = (id: string, seed: number, fields: Partial<GenerateRequest> = {}) =>
    generateRequest(id, {
      prompt: Int32Array.of(...common, ...prompt(20, seed)),
      maxTokens: 12,
      ...fields,
    });
  const keeping = { maxBatchTokens: 64, chunkTokens: 16, prefixBytes: 1_000_000 };
  const cachedOf = (events: readonly EngineEvent[], id: string) =>
    events.flatMap((event) => (event.type === 'admitted' && event.id === id ? [event.cachedTokens] : []));

  it('are read once, and draw what they draw without that', async () => {
    const { engine, runner } = build(keeping);
    engine.generate(like('a', 1));
    const first = await drain(engine);
    expect(cachedOf(first, 'a')).toEqual([0]);
    expect(tokensOf(first, 'a')).toEqual(fakeGreedy(like('a', 1).prompt, 12));
    const runs = runner.runs.length;
    engine.generate(like('b', 2));
    engine.generate(like('c', 3, { choices: 3 }));
    const second = await drain(engine);
    for (const [id, seed] of [
      ['b', 2],
      ['c', 3],
    ] as const) {
      expect(cachedOf(second, id)).toEqual([64]);
      expect(tokensOf(second, id)).toEqual(fakeGreedy(like(id, seed).prompt, 12));
    }
    expect(runner.runs.slice(runs).every(({ width }) => width <= 16)).toBe(true);
    expect(engine.counters()).toMatchObject({ cachedTokens: 128, prefillTokens: 90 + 26 + 26 });
  });

  it('of which one is still read or decoded are helped by it', async () => {
    const { engine } = build(keeping);
    const events: EngineEvent[] = [];
    engine.generate(like('a', 1, { maxTokens: 60 }));
    while (!events.some(({ type }) => type === 'token')) events.push(...(await engine.step()));
    engine.generate(like('b', 2));
    events.push(...(await drain(engine)));
    expect(cachedOf(events, 'b')).toEqual([64]);
    expect(tokensOf(events, 'b')).toEqual(fakeGreedy(like('b', 2).prompt, 12));
    expect(tokensOf(events, 'a')).toEqual(fakeGreedy(like('a', 1).prompt, 60));
  });

  it('of two accounts are both read', async () => {
    const { engine } = build(keeping);
    engine.generate(like('a', 1));
    await drain(engine);
    engine.generate(like('b', 2, { scope: 'another' }));
    expect(cachedOf(await drain(engine), 'b')).toEqual([0]);
  });

  it('are kept within their bytes', async () => {
    const { engine } = build({ ...keeping, prefixBytes: 3 * 16 * position });
    for (let seed = 0; seed < 5; seed++) {
      engine.generate(generateRequest(`r${seed}`, { prompt: prompt(50 + seed, seed) }));
      await drain(engine);
      expect(engine.counters().prefixBytesUsed).toBeLessThanOrEqual(3 * 16 * position);
    }
    expect(engine.counters().prefixBytesUsed).toBe(3 * 16 * position);
  });

  it('twenty mixed ones draw what each draws alone', async () => {
    const { engine } = build(keeping);
    const requests = mixedRequests().map((request, index) => ({
      ...request,
      prompt: Int32Array.of(...common.subarray(0, 10 + ((index * 17) % 60)), ...request.prompt),
    }));
    const events: EngineEvent[] = [];
    for (const request of requests) {
      engine.generate(request);
      events.push(...(await engine.step()), ...(await engine.step()));
    }
    events.push(...(await drain(engine)));
    expect(engine.counters().cachedTokens).toBeGreaterThan(0);
    for (const request of requests) {
      for (let choice = 0; choice < request.choices; choice++) {
        const single = await alone(build().engine, request, choice);
        expect(tokensOf(events, request.id, choice), `${request.id} choice ${choice}`).toEqual(single);
      }
    }
  });
});

describe('decoding', () => {
  it('greedy text follows the whole history', async () => {
    const { engine } = build();
    const request = generateRequest('a', { prompt: prompt(5), maxTokens: 100 });
    expect(await alone(engine, request)).toEqual(fakeGreedy(request.prompt, 100));
  });

  it('twenty mixed requests that join and leave at different steps draw what each draws alone', async () => {
    const { engine, runner } = build({ maxBatchTokens: 32 });
    const requests = mixedRequests();
    const events: EngineEvent[] = [];
    for (const request of requests) {
      engine.generate(request);
      events.push(...(await engine.step()), ...(await engine.step()));
    }
    events.push(...(await drain(engine)));
    expect(Math.max(...runner.runs.map(({ rows }) => rows))).toBe(8);

    for (const request of requests) {
      for (let choice = 0; choice < request.choices; choice++) {
        const single = await alone(build().engine, request, choice);
        expect(single.length).toBeGreaterThan(0);
        expect(tokensOf(events, request.id, choice), `${request.id}, choice ${choice}`).toEqual(single);
      }
    }
  });

  it('an end token ends a choice and is reported', async () => {
    const { engine } = build();
    const [first, second, third] = fakeGreedy([1, 2, 3], 3);
    expect(new Set([first, second, third]).size).toBe(3);
    engine.generate(generateRequest('a', { maxTokens: 50, endTokens: [63, third!] }));
    const events = await drain(engine);
    expect(tokensOf(events, 'a')).toEqual([first, second, third]);
    expect(events.at(-1)).toEqual({ type: 'token', id: 'a', choice: 0, token: third, finish: 'end' });
  });

  it('a choice ends with its token limit', async () => {
    const { engine } = build();
    engine.generate(generateRequest('a', { maxTokens: 3 }));
    const tokens = (await drain(engine)).filter(({ type }) => type === 'token');
    expect(tokens.map((event) => 'finish' in event && event.finish)).toEqual([false, false, 'length']);
  });

  it('a choice ends with the context', async () => {
    const { engine } = build({ contextLength: 10 });
    engine.generate(generateRequest('a', { prompt: prompt(7), maxTokens: 100 }));
    const events = await drain(engine);
    expect(tokensOf(events, 'a')).toEqual(fakeGreedy(prompt(7), 3));
    expect(events.at(-1)).toMatchObject({ finish: 'length' });
  });

  it('a request says once that it is admitted, before its first token', async () => {
    const { engine } = build({ maxBatchTokens: 8 });
    engine.generate(generateRequest('a', { prompt: prompt(20), maxTokens: 1 }));
    expect((await drain(engine)).map(({ type }) => type)).toEqual(['admitted', 'token']);
  });

  it("log-probabilities are the model's own, before bias and temperature", async () => {
    const { engine } = build();
    const sampling = { ...greedy, logitBias: [[5, 100]] as const };
    engine.generate(generateRequest('a', { maxTokens: 1, topLogprobs: 2, sampling }));
    const event = (await drain(engine)).at(-1) as EngineEvent & { type: 'token' };
    const logits = Array.from(fakeLogits([1, 2, 3]));
    const normalizer = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
    const likeliest = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]!).slice(0, 2);
    expect(event.token).toBe(5);
    expect(event.logprob).toBeCloseTo(logits[5]! - normalizer, 5);
    expect(event.topLogprobs?.map(({ token }) => token)).toEqual(likeliest);
    expect(event.topLogprobs?.[0]?.logprob).toBeCloseTo(logits[likeliest[0]!]! - normalizer, 5);
  });

  it('all logits are asked for only of those rows whose draw needs them, and change no text', async () => {
    const { engine, runner } = build();
    const asked: unknown[] = [];
    runner.onRun = ({ top, whole }) => void asked.push([top, [...whole]]);
    engine.generate(generateRequest('long', { prompt: prompt(5, 1), maxTokens: 12 }));
    engine.generate(generateRequest('short', { prompt: prompt(5, 2), maxTokens: 3, topLogprobs: 2 }));
    const events = await drain(engine);
    expect(tokensOf(events, 'long')).toEqual(fakeGreedy(prompt(5, 1), 12));
    expect(tokensOf(events, 'short')).toEqual(fakeGreedy(prompt(5, 2), 3));
    // Both prompts are read in one step and draw in it, and two more steps end the short one.
    expect(asked).toEqual([[2, [1n]], [2, [1n]], [2, [1n]], ...new Array(9).fill([1, []])]);
  });

  it('no log-probabilities are reported unless asked for', async () => {
    const { engine } = build();
    engine.generate(generateRequest('a', { maxTokens: 1 }));
    expect((await drain(engine)).at(-1)).not.toHaveProperty('logprob');
  });

  it('the same seed draws the same tokens whatever the batch-mates', async () => {
    const request = generateRequest('a', {
      maxTokens: 30,
      sampling: { ...greedy, temperature: 1.5, seed: 12345 },
    });
    const single = await alone(build().engine, request);
    const { engine } = build();
    for (let mate = 0; mate < 5; mate++) {
      const sampling = { ...greedy, temperature: 1, seed: mate };
      engine.generate(generateRequest(`mate${mate}`, { prompt: prompt(9, mate), maxTokens: 20, sampling }));
    }
    engine.generate(request);
    expect(tokensOf(await drain(engine), 'a')).toEqual(single);
    expect(
      await alone(build().engine, { ...request, sampling: { ...request.sampling, seed: 12346 } }),
    ).not.toEqual(single);
  });
});

describe('drafts', () => {
  /** The next token follows from the last two: texts repeat themselves soon. */
  const memory = 2;
  const repeating = (settings: Partial<DecoderEngineSettings> = {}) => {
    const built = build(settings);
    built.runner.memory = memory;
    return built;
  };
  const sampled = { ...greedy, temperature: 0.01, topK: 3, seed: 5 };

  /** A prompt that says before what is drawn after it, and that. */
  function said(count: number, seed = 0) {
    const beginning = prompt(5, seed);
    const text = fakeGreedy(beginning, count, memory);
    return { asked: Int32Array.of(...beginning, ...text, ...beginning), text };
  }

  it('of a sequence that is alone are drawn several to a step, the same tokens as one by one', async () => {
    const { engine, runner } = repeating();
    const { asked, text } = said(100);
    expect(await alone(engine, generateRequest('a', { prompt: asked, maxTokens: 100 }))).toEqual(text);
    const { acceptedDraftTokens, decodeTokens, steps } = engine.counters();
    expect(decodeTokens).toBe(100);
    // Of the prompt two steps, the second of which brings the first token.
    expect(steps).toBe(101 - acceptedDraftTokens);
    expect(steps).toBeLessThan(20);
    expect(Math.max(...runner.runs.slice(2).map(({ width }) => width))).toBe(fakeShape.decodeWidth);
    expect(engine.counters()).toMatchObject({ running: 0, kvBytesUsed: 0 });
  });

  it('that are not drawn leave nothing behind', async () => {
    const { engine } = build();
    // Its tokens follow from all that was said, so that what came after the same two tokens hardly ever comes again.
    const request = generateRequest('a', { prompt: prompt(60, 1), maxTokens: 190 });
    expect(await alone(engine, request)).toEqual(fakeGreedy(request.prompt, 190));
    const { draftTokens, acceptedDraftTokens } = engine.counters();
    expect(draftTokens - acceptedDraftTokens).toBeGreaterThan(5);
  });

  it('are not run beside other sequences, and change no text when those come and go', async () => {
    const { engine, runner } = repeating();
    const requests = ['a', 'b', 'c'].map((id, seed) =>
      generateRequest(id, { prompt: said(60, seed).asked, maxTokens: 150, sampling: { ...sampled, seed } }),
    );
    const events: EngineEvent[] = [];
    runner.onRun = ({ rows, width, lengths }) => {
      const hasPast = lengths.some((length) => length >= width);
      if (rows > 1 && hasPast) expect(width).toBe(1);
    };
    for (const request of requests) {
      engine.generate(request);
      for (let step = 0; step < 12; step++) events.push(...(await engine.step()));
    }
    events.push(...(await drain(engine)));
    expect(engine.counters().acceptedDraftTokens).toBeGreaterThan(0);
    for (const request of requests) {
      const mate = generateRequest('mate', { prompt: prompt(5, 9), maxTokens: 170 });
      const { engine: shared } = repeating();
      shared.generate(mate);
      shared.generate(request);
      const single = tokensOf(await drain(shared), request.id);
      expect(single).toHaveLength(150);
      expect(tokensOf(events, request.id)).toEqual(single);
    }
  });

  it('stay within what a choice may draw, and within the memory for it', async () => {
    for (let maxTokens = 40; maxTokens < 60; maxTokens++) {
      const kvBytes = (5 + maxTokens - 1) * position;
      const { engine } = repeating({ maxSequences: 1, kvBytes, contextLength: 5 + maxTokens });
      engine.generate(generateRequest('a', { prompt: prompt(5), maxTokens: 1_000 }));
      const events = await drain(engine);
      expect(tokensOf(events, 'a')).toEqual(fakeGreedy(prompt(5), maxTokens, memory));
      expect(events.at(-1)).toMatchObject({ finish: 'length' });
    }
  });

  it('end where the text ends, in the middle of a step too', async () => {
    const { asked, text } = said(20);
    expect(new Set(text.slice(0, 8)).size).toBe(8);
    for (const [at, end] of text.slice(0, 8).entries()) {
      const { engine } = repeating();
      engine.generate(generateRequest('a', { prompt: asked, maxTokens: 50, endTokens: [end] }));
      const events = await drain(engine);
      expect(tokensOf(events, 'a')).toEqual(text.slice(0, at + 1));
      expect(events.at(-1)).toMatchObject({ finish: 'end' });
      // The first token comes with the prompt, and the next step brings more than are looked at here.
      expect(engine.counters()).toMatchObject({ running: 0, kvBytesUsed: 0, steps: at === 0 ? 1 : 2 });
    }
  });

  it('have the log-probabilities that they have one by one', async () => {
    const { asked, text } = said(20);
    const { engine } = repeating();
    engine.generate(generateRequest('a', { prompt: asked, maxTokens: 12, topLogprobs: 1 }));
    const events = (await drain(engine)).filter((event) => event.type === 'token');
    expect(engine.counters().acceptedDraftTokens).toBeGreaterThan(7);
    for (const [index, { token, logprob }] of events.entries()) {
      const logits = Array.from(fakeLogits([...asked, ...text.slice(0, index)].slice(-memory)));
      const normalizer = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
      expect(token).toBe(text[index]);
      expect(logprob).toBeCloseTo(logits[token]! - normalizer, 5);
    }
  });

  it('count with the penalties of what was drawn before them in the same step', async () => {
    const { asked } = said(40);
    const sampling = { ...sampled, frequencyPenalty: 0.02, presencePenalty: 0.01 };
    const request = generateRequest('a', { prompt: asked, maxTokens: 40, sampling });
    const { engine } = repeating();
    const single = await alone(engine, request);
    expect(engine.counters().acceptedDraftTokens).toBeGreaterThan(0);
    const { engine: shared } = repeating();
    shared.generate(generateRequest('mate', { maxTokens: 41 }));
    shared.generate(request);
    expect(single).toEqual(tokensOf(await drain(shared), 'a'));
  });

  it('of which one is not a number fail the request, with what was drawn before', async () => {
    const { asked, text } = said(20);
    const { engine, runner } = repeating();
    runner.onOutput = ({ top }) => {
      if (runner.runs.length === 2) top.logits.fill(Number.NaN, 3 * top.count, 4 * top.count);
    };
    engine.generate(generateRequest('a', { prompt: asked, maxTokens: 50 }));
    const events = await drain(engine);
    expect(tokensOf(events, 'a')).toEqual(text.slice(0, 4));
    expect(events.at(-1)).toMatchObject({ type: 'failed', reason: expect.stringMatching(/not a number/) });
    expect(engine.counters()).toMatchObject({ running: 0, kvBytesUsed: 0 });
  });

  it('come from what was said before in the same scope, however its text ended', async () => {
    const fields = { prompt: prompt(30, 1), maxTokens: 60 };
    const text = fakeGreedy(fields.prompt, 60);
    const { engine } = build();
    const stepsOf = async (id: string, scope: string) => {
      const before = engine.counters().steps;
      const drawn = await alone(engine, generateRequest(id, { ...fields, scope }));
      expect(drawn).toEqual(text);
      return engine.counters().steps - before;
    };
    const first = await stepsOf('a', 'mine');
    expect(first).toBeGreaterThan(50);
    expect(await stepsOf('b', 'mine')).toBeLessThan(12);
    expect(await stepsOf('c', 'another')).toBe(first);

    engine.generate(generateRequest('d', { ...fields, scope: 'given up' }));
    while (engine.counters().decodeTokens < 200) await engine.step();
    engine.cancel('d');
    await drain(engine);
    expect(await stepsOf('e', 'given up')).toBeLessThan(first - 10);
  });

  it('are not made for several choices of a request until one is left', async () => {
    const { asked, text } = said(60);
    const { engine } = repeating();
    engine.generate(generateRequest('a', { prompt: asked, maxTokens: 40, choices: 2 }));
    const events = [...(await engine.step()), ...(await engine.step())];
    expect(engine.counters()).toMatchObject({ draftTokens: 0, decodeTokens: 4 });
    engine.cancel('a', 0);
    events.push(...(await drain(engine)));
    expect(tokensOf(events, 'a', 1)).toEqual(text.slice(0, 40));
    expect(engine.counters().acceptedDraftTokens).toBeGreaterThan(20);
  });
});

describe('choices', () => {
  it('of one request share one prefill', async () => {
    const { engine } = build();
    const sampling = { ...greedy, temperature: 1, seed: 3 };
    engine.generate(generateRequest('a', { prompt: prompt(20), choices: 4, maxTokens: 5, sampling }));
    const events = await drain(engine);
    expect(engine.counters()).toMatchObject({ prefillTokens: 20, decodeTokens: 20, steps: 5 });
    const texts = [0, 1, 2, 3].map((choice) => tokensOf(events, 'a', choice).join());
    expect(new Set(texts).size).toBe(4);
  });

  it('that end with their first token leave no row behind', async () => {
    const { engine, runner } = build();
    engine.generate(generateRequest('a', { choices: 4, maxTokens: 1 }));
    const events = await drain(engine);
    expect(events.filter(({ type }) => type === 'token')).toHaveLength(4);
    expect(runner.runs).toHaveLength(1);
    expect(engine.counters()).toMatchObject({ running: 0, kvBytesUsed: 0 });
  });

  it('cancelled one at a time free one slot each and leave the others as they are', async () => {
    const { engine } = build();
    engine.generate(generateRequest('a', { prompt: prompt(6), choices: 3, maxTokens: 12 }));
    const events = [...(await engine.step()), ...(await engine.step())];
    engine.cancel('a', 0);
    events.push(...(await engine.step()));
    expect(engine.counters().running).toBe(2);
    events.push(...(await drain(engine)));
    const expected = fakeGreedy(prompt(6), 12);
    expect(tokensOf(events, 'a', 0)).toEqual(expected.slice(0, 2));
    expect(tokensOf(events, 'a', 1)).toEqual(expected);
    expect(tokensOf(events, 'a', 2)).toEqual(expected);
    expect(events.some(({ type }) => type === 'cancelled')).toBe(false);
  });

  it('cancelled while the prompt is read never get a row', async () => {
    const { engine } = build({ maxBatchTokens: 8 });
    engine.generate(generateRequest('a', { prompt: prompt(30), choices: 3, maxTokens: 2 }));
    await engine.step();
    expect(engine.counters().running).toBe(3);
    engine.cancel('a', 1);
    await engine.step();
    expect(engine.counters().running).toBe(2);
    const events = await drain(engine);
    expect(tokensOf(events, 'a', 1)).toEqual([]);
    expect(tokensOf(events, 'a', 2)).toEqual(fakeGreedy(prompt(30), 2));
  });

  it('all cancelled end the request', async () => {
    const { engine } = build();
    engine.generate(generateRequest('a', { choices: 2, maxTokens: 50 }));
    await engine.step();
    engine.cancel('a', 0);
    engine.cancel('a', 1);
    await engine.step();
    expect(engine.busy).toBe(false);
    expect(engine.counters()).toMatchObject({ running: 0, kvBytesUsed: 0 });
  });
});

describe('cancellation', () => {
  it('of a waiting request drops it without a run', async () => {
    const { engine, runner } = build({ maxSequences: 1 });
    engine.generate(generateRequest('a', { maxTokens: 50 }));
    engine.generate(generateRequest('b'));
    await engine.step();
    expect(engine.counters()).toMatchObject({ running: 1, waiting: 1 });
    engine.cancel('b');
    const events = await engine.step();
    expect(events).toContainEqual({ type: 'cancelled', id: 'b' });
    expect(engine.counters()).toMatchObject({ running: 1, waiting: 0, cancelled: 1 });
    expect(runner.runs).toHaveLength(2);
  });

  it('in the middle of a prompt frees its slot and memory within one step', async () => {
    const { engine } = build({ maxBatchTokens: 8 });
    engine.generate(generateRequest('a', { prompt: prompt(100) }));
    await engine.step();
    await engine.step();
    expect(engine.counters().kvBytesUsed).toBeGreaterThanOrEqual(16 * position);
    engine.cancel('a');
    expect(await engine.step()).toEqual([{ type: 'cancelled', id: 'a' }]);
    expect(engine.counters()).toMatchObject({ running: 0, waiting: 0, kvBytesUsed: 0, cancelled: 1 });
    expect(engine.busy).toBe(false);
  });

  it('of a decoding request frees its slot within one step, and the others go on unharmed', async () => {
    const { engine } = build();
    const requests = ['a', 'b', 'c'].map((id, index) =>
      generateRequest(id, { prompt: prompt(4 + index, index), maxTokens: 20 }),
    );
    for (const request of requests) engine.generate(request);
    const events = [...(await engine.step()), ...(await engine.step())];
    engine.cancel('a');
    events.push(...(await engine.step()));
    expect(engine.counters().running).toBe(2);
    events.push(...(await drain(engine)));
    expect(tokensOf(events, 'a')).toHaveLength(2);
    expect(tokensOf(events, 'b')).toEqual(fakeGreedy(prompt(5, 1), 20));
    expect(tokensOf(events, 'c')).toEqual(fakeGreedy(prompt(6, 2), 20));
  });

  it('that arrives while a step runs takes effect at the next', async () => {
    const { engine, runner } = build();
    engine.generate(generateRequest('a', { maxTokens: 50 }));
    runner.onRun = () => {
      if (runner.runs.length === 2) engine.cancel('a');
    };
    const events = await drain(engine);
    expect(tokensOf(events, 'a')).toHaveLength(2);
    expect(events.at(-1)).toEqual({ type: 'cancelled', id: 'a' });
    expect(runner.runs).toHaveLength(2);
  });

  it('of an unknown id is answered all the same', async () => {
    const { engine } = build();
    engine.cancel('nobody');
    expect(await engine.step()).toEqual([{ type: 'cancelled', id: 'nobody' }]);
    expect(engine.counters().cancelled).toBe(0);
  });
});

describe('refusal', () => {
  const cases: ReadonlyArray<readonly [string, Partial<GenerateRequest>, RegExp]> = [
    ['an empty prompt', { prompt: new Int32Array(0) }, /prompt is empty/],
    [
      'a prompt as long as the context',
      { prompt: prompt(256) },
      /256 tokens leave no room in a context of 256/,
    ],
    ['more choices than slots', { choices: 9 }, /9 choices do not fit 8 slots/],
    [
      'a token outside the vocabulary',
      { prompt: Int32Array.of(1, 64) },
      /token 64 is not in a vocabulary of 64/,
    ],
  ];
  for (const [title, fields, reason] of cases) {
    it(`of ${title}`, async () => {
      const { engine, runner } = build();
      engine.generate(generateRequest('a', fields));
      expect(await engine.step()).toEqual([
        { type: 'failed', id: 'a', reason: expect.stringMatching(reason) },
      ]);
      expect(runner.runs).toHaveLength(0);
      expect(engine.busy).toBe(false);
    });
  }

  it('of a request that the KV budget could never hold', async () => {
    const { engine } = build({ kvBytes: 40 * position });
    engine.generate(generateRequest('fits', { prompt: prompt(31), maxTokens: 10 }));
    engine.generate(generateRequest('never', { prompt: prompt(31), maxTokens: 11 }));
    const events = await drain(engine);
    expect(tokensOf(events, 'fits')).toHaveLength(10);
    expect(events.find((event) => event.id === 'never')).toMatchObject({
      type: 'failed',
      reason: expect.stringMatching(/1 x 41 positions/),
    });
  });

  it('of an id that is already running', async () => {
    const { engine } = build();
    engine.generate(generateRequest('a', { maxTokens: 3 }));
    await engine.step();
    engine.generate(generateRequest('a', { maxTokens: 3 }));
    expect(await engine.step()).toContainEqual(expect.objectContaining({ type: 'failed', id: 'a' }));
  });
});

describe('a long run', () => {
  it('of 300 requests with random cancellations draws what each draws alone, and leaves nothing', async () => {
    const random = new Random(2024, 0);
    const whole = (below: number) => Math.floor(random.next() * below);
    const { engine } = build({ maxSequences: 6, maxBatchTokens: 24, kvBytes: 500 * position });
    const requests: GenerateRequest[] = [];
    const cancelled = new Set<string>();
    const events: EngineEvent[] = [];
    while (requests.length < 300 || engine.busy) {
      if (requests.length < 300 && random.next() < 0.4) {
        const id = `r${requests.length}`;
        const request = generateRequest(id, {
          prompt: prompt(1 + whole(70), requests.length),
          maxTokens: 1 + whole(20),
          choices: random.next() < 0.2 ? 2 : 1,
          priority: random.next() < 0.3 ? 'batch' : 'interactive',
        });
        requests.push(request);
        engine.generate(request);
      }
      if (requests.length > 0 && random.next() < 0.15) {
        const { id, choices } = requests[whole(requests.length)]!;
        const choice = random.next() < 0.5 ? whole(choices) : undefined;
        engine.cancel(id, choice);
        for (let index = 0; index < choices; index++) {
          if (choice === undefined || choice === index) cancelled.add(`${id} ${index}`);
        }
      }
      events.push(...(await engine.step()));
      expect(engine.counters().running).toBeLessThanOrEqual(6);
      expect(engine.counters().kvBytesUsed).toBeLessThanOrEqual(500 * position);
    }
    expect(events.filter(({ type }) => type === 'failed')).toEqual([]);
    expect(engine.counters()).toMatchObject({ running: 0, waiting: 0, kvBytesUsed: 0 });
    for (const { id, choices, prompt: tokens, maxTokens } of requests) {
      for (let choice = 0; choice < choices; choice++) {
        const drawn = tokensOf(events, id, choice);
        if (!cancelled.has(`${id} ${choice}`)) expect(drawn, id).toHaveLength(maxTokens);
        expect(drawn, id).toEqual(fakeGreedy(tokens, drawn.length));
      }
    }
  });
});

describe('memory', () => {
  it('stays within the budget while requests come and go, and returns to zero', async () => {
    const kvBytes = 320 * position;
    const { engine, runner } = build({ kvBytes, maxBatchTokens: 32 });
    let most = 0;
    runner.onOutput = () => {
      most = Math.max(most, engine.counters().kvBytesUsed);
    };
    const requests = mixedRequests();
    for (const request of requests) engine.generate(request);
    const events = await drain(engine);
    expect(most).toBeGreaterThan(100 * position);
    expect(most).toBeLessThanOrEqual(kvBytes);
    expect(events.filter(({ type }) => type === 'failed')).toEqual([]);
    expect(engine.counters()).toMatchObject({ running: 0, waiting: 0, kvBytesUsed: 0 });
    for (const request of requests.filter(({ sampling }) => sampling.temperature === 0)) {
      expect(tokensOf(events, request.id)).toEqual(await alone(build().engine, request));
    }
  });
});

describe('failure', () => {
  it('of a run fails the requests in it, and the others go on', async () => {
    const { engine, runner } = build();
    engine.generate(generateRequest('a', { maxTokens: 6 }));
    await engine.step();
    engine.generate(generateRequest('b'));
    runner.onRun = ({ width }) => {
      if (width > 1) throw new Error('out of memory');
    };
    const events = await drain(engine);
    expect(events.filter(({ type }) => type === 'failed')).toEqual([
      { type: 'failed', id: 'b', reason: 'the model failed to run: out of memory' },
    ]);
    expect(tokensOf(events, 'a')).toEqual(fakeGreedy([1, 2, 3], 6).slice(1));
    expect(engine.counters()).toMatchObject({ running: 0, kvBytesUsed: 0 });
  });

  it('of a decode step spares a prompt that is still being read', async () => {
    const { engine, runner } = build({ maxBatchTokens: 8 });
    engine.generate(generateRequest('batch', { prompt: prompt(30), maxTokens: 3, priority: 'batch' }));
    await engine.step();
    engine.generate(generateRequest('chat', { maxTokens: 9 }));
    await engine.step();
    runner.onRun = ({ rows, width }) => {
      if (rows === 2 && width === 1) throw new Error('out of memory');
    };
    const events = await drain(engine);
    expect(events.filter(({ type }) => type === 'failed').map(({ id }) => id)).toEqual(['chat']);
    expect(tokensOf(events, 'batch')).toEqual(fakeGreedy(prompt(30), 3));
  });

  it('of every run makes the engine give up', async () => {
    const { engine, runner } = build({ maxSequences: 1 });
    for (const id of ['a', 'b', 'c']) engine.generate(generateRequest(id));
    runner.onRun = () => {
      throw new Error('device lost');
    };
    await expect(drain(engine)).rejects.toThrow(
      expect.objectContaining({
        message: 'The model failed 3 runs in a row',
        cause: new Error('device lost'),
      }),
    );
  });

  it('of one row that is not a number fails its request alone', async () => {
    const { engine, runner } = build();
    for (const id of ['a', 'b', 'c']) engine.generate(generateRequest(id, { maxTokens: 5 }));
    await engine.step();
    runner.onOutput = ({ top }, { rows, cache }) => {
      if (runner.runs.length !== 2) return;
      top.logits.fill(Number.NaN, 0, top.count);
      const { data } = cache[0]!.keys;
      data.fill(Number.NaN, 0, data.length / rows);
    };
    const events = await drain(engine);
    expect(events.filter(({ type }) => type === 'failed')).toEqual([
      { type: 'failed', id: 'a', reason: 'the model gave a result that is not a number' },
    ]);
    for (const id of ['b', 'c']) expect(tokensOf(events, id)).toEqual(fakeGreedy([1, 2, 3], 5).slice(1));
  });
});
