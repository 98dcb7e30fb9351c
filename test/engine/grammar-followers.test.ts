import { describe, expect, it } from 'vitest';
import { DecoderEngine } from '../../src/engine/decoder-engine.js';
import type { Grammar, GrammarFollower, Grammars } from '../../src/engine/grammar.js';
import type { GenerateRequest } from '../../src/engine/request.js';
import { FakeDecoderRunner, fakeGreedy, fakeShape } from './support/fake-decoder-runner.js';
import { drain, generateRequest, prompt, tokensOf } from './support/requests.js';

const end = 63;

/** Followers that are counted: those given out, and how often each was disposed. */
class CountedGrammars implements Grammars {
  readonly disposals: number[] = [];
  /** The tokens allowed when so many were taken. */
  allowedAt: (taken: number) => Int32Array = () => all;
  onAccept: (token: number) => void = () => {};
  /** How many followers there may be. */
  limit = Number.POSITIVE_INFINITY;

  /** Grammars that are compiled already; all of them when left out. */
  compiled: Set<string> | undefined;

  has({ ebnf }: Grammar): boolean {
    return this.compiled?.has(ebnf) ?? true;
  }

  async follow({ ebnf }: Grammar): Promise<GrammarFollower> {
    this.compiled?.add(ebnf);
    if (this.disposals.length === this.limit) throw new Error('no more');
    const index = this.disposals.push(0) - 1;
    let taken = 0;
    return {
      allowed: async () => this.allowedAt(taken).slice(),
      accept: (token) => {
        taken++;
        this.onAccept(token);
      },
      dispose: () => void this.disposals[index]!++,
    };
  }
}

const all = new Int32Array(Math.ceil(fakeShape.vocabularySize / 32)).fill(-1);
const none = new Int32Array(all.length);
const onlyEnd = new Int32Array(all.length);
onlyEnd[end >> 5] = 1 << (end & 31);

function build() {
  const runner = new FakeDecoderRunner();
  const engine = new DecoderEngine(runner, {
    maxSequences: 4,
    contextLength: 64,
    kvBytes: 1_000_000,
    maxBatchTokens: 16,
    chunkTokens: 16,
    prefixBytes: 0,
  });
  const grammars = new CountedGrammars();
  engine.grammars = grammars;
  const generate = (id: string, fields: Partial<GenerateRequest> = {}) =>
    engine.generate(generateRequest(id, { grammar: { ebnf: 'root ::= ""', strings: [] }, ...fields }));
  return { runner, engine, grammars, generate };
}

describe('each follower of a grammar is disposed once', () => {
  it('when its text is as long as it may be', async () => {
    const { engine, grammars, generate } = build();
    generate('a', { maxTokens: 3, choices: 3 });
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1, 1]);
  });

  it('when its text has ended', async () => {
    const { engine, grammars, generate } = build();
    grammars.allowedAt = (taken) => (taken === 2 ? onlyEnd : all);
    generate('a', { maxTokens: 30, endTokens: [end], choices: 2 });
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1]);
  });

  it('when its request is cancelled while it is decoded', async () => {
    const { engine, grammars, generate } = build();
    generate('a', { maxTokens: 30, choices: 2 });
    for (let step = 0; step < 3; step++) await engine.step();
    engine.cancel('a');
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1]);
  });

  it('when its request is cancelled while its prompt is read', async () => {
    const { engine, grammars, generate } = build();
    generate('a', { prompt: prompt(40), choices: 2 });
    await engine.step();
    engine.cancel('a');
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1]);
  });

  it('when its request is cancelled while it waits', async () => {
    const { engine, grammars, generate } = build();
    for (let index = 0; index < 6; index++) generate(`r${index}`, { maxTokens: 20 });
    await engine.step();
    engine.cancel('r5');
    await engine.step();
    expect(grammars.disposals).toEqual([0, 0, 0, 0, 0, 1]);
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('when its choice alone is cancelled', async () => {
    const { engine, grammars, generate } = build();
    generate('a', { maxTokens: 10, choices: 3 });
    for (let step = 0; step < 3; step++) await engine.step();
    engine.cancel('a', 1);
    await engine.step();
    expect(grammars.disposals).toEqual([0, 1, 0]);
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1, 1]);
  });

  it('when a run of the model fails', async () => {
    const { engine, grammars, runner, generate } = build();
    generate('a', { maxTokens: 10, choices: 2 });
    await engine.step();
    runner.onRun = () => {
      throw new Error('no');
    };
    await engine.step();
    expect(grammars.disposals).toEqual([1, 1]);
  });

  it('when its grammar leaves no token', async () => {
    const { engine, grammars, generate } = build();
    grammars.allowedAt = (taken) => (taken === 2 ? none : all);
    generate('a', { maxTokens: 10, choices: 2 });
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1]);
  });

  it('when another of its request cannot be had', async () => {
    const { engine, grammars, generate } = build();
    grammars.limit = 2;
    generate('a', { choices: 3 });
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1]);
  });

  it('when its request can never fit', async () => {
    const { engine, grammars, generate } = build();
    generate('a', { prompt: prompt(200), choices: 2 });
    await drain(engine);
    expect(grammars.disposals).toEqual([1, 1]);
  });
});

it('compiles one grammar between two steps at most, so that others are drawn on', async () => {
  const { engine, grammars, generate } = build();
  grammars.compiled = new Set();
  engine.generate(generateRequest('plain', { maxTokens: 20 }));
  await engine.step();
  for (const [index, ebnf] of ['root ::= "a"', 'root ::= "b"', 'root ::= "a"', 'root ::= "c"'].entries()) {
    generate(`${ebnf} ${index}`, { grammar: { ebnf, strings: [] }, maxTokens: 1 });
  }
  const sizes: number[] = [];
  while (grammars.compiled.size < 3) {
    const events = await engine.step();
    sizes.push(grammars.compiled.size);
    expect(events.some(({ type }) => type === 'admitted' || type === 'token')).toBe(true);
  }
  expect(sizes).toEqual([1, 2, 3]);
  await drain(engine);
});

describe('drafts under a grammar', () => {
  /** A prompt that says before what is drawn after it, and that, by a model that looks at two tokens. */
  const beginning = prompt(5);
  const text = fakeGreedy(beginning, 20, 2);
  const asked = Int32Array.of(...beginning, ...text, ...beginning);

  it('are drawn as long as it allows them, and it takes each token that is drawn once', async () => {
    const { engine, runner, grammars, generate } = build();
    runner.memory = 2;
    const taken: number[] = [];
    grammars.onAccept = (token) => void taken.push(token);
    // The sixth token is another than the text's, and what follows is another text.
    const without = text[5]!;
    grammars.allowedAt = (count) => {
      const allowed = all.slice();
      if (count === 5) allowed[without >> 5]! &= ~(1 << (without & 31));
      return allowed;
    };
    generate('a', { prompt: asked, maxTokens: 12 });
    const drawn = tokensOf(await drain(engine), 'a');
    expect(drawn).toHaveLength(12);
    expect(drawn.slice(0, 5)).toEqual(text.slice(0, 5));
    expect(drawn[5]).not.toBe(without);
    expect(taken).toEqual(drawn);
    expect(engine.counters().acceptedDraftTokens).toBeGreaterThan(3);
    expect(grammars.disposals).toEqual([1]);
  });

  it('end where it leaves no token, with what was drawn before', async () => {
    const { engine, runner, grammars, generate } = build();
    runner.memory = 2;
    grammars.allowedAt = (count) => (count === 5 ? none : all);
    generate('a', { prompt: asked, maxTokens: 12 });
    const events = await drain(engine);
    expect(tokensOf(events, 'a')).toEqual(text.slice(0, 5));
    expect(events.at(-1)).toMatchObject({ type: 'failed', reason: 'the grammar leaves no token to draw' });
    expect(grammars.disposals).toEqual([1]);
    expect(engine.counters()).toMatchObject({ running: 0, kvBytesUsed: 0 });
  });
});
