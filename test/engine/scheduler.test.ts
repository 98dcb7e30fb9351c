import { describe, expect, it } from 'vitest';
import { PromptCuts } from '../../src/engine/prompt-cuts.js';
import type { GenerateRequest } from '../../src/engine/request.js';
import { SamplerScratch } from '../../src/engine/sampler.js';
import { Scheduler, type SchedulerSettings, type Step } from '../../src/engine/scheduler.js';
import { createGeneration, type Generation } from '../../src/engine/sequence.js';
import { generateRequest, prompt } from './support/requests.js';

const scratch = new SamplerScratch(8);

function generation(id: string, length: number, fields: Partial<GenerateRequest> = {}): Generation {
  const request = generateRequest(id, { prompt: prompt(length), maxTokens: 10, ...fields });
  return createGeneration(request, { contextLength: 10_000, scratch });
}

function build(settings: Partial<SchedulerSettings> = {}) {
  return new Scheduler({
    slots: 4,
    contextLength: 10_000,
    kvBytes: 1_000_000,
    bytesPerPosition: 1,
    maxBatchTokens: 100,
    cuts: new PromptCuts(100, 1),
    ...settings,
  });
}

/** Takes the next step and does to the sequences what an engine does when it has run. */
function advance(scheduler: Scheduler): Step | undefined {
  const step = scheduler.next();
  if (step?.kind === 'prefill') {
    for (const { sequence, tokens } of step.chunks) {
      sequence.cached += tokens;
      if (sequence.cached === sequence.generation.request.prompt.length) scheduler.branch(sequence);
    }
  } else if (step?.kind === 'decode') {
    for (const { sequence, tokens } of step.chunks) sequence.cached += tokens;
  }
  return step;
}

/** A step in short: `prefill a:60 b:55` or `decode a b -`, where `-` is an idle row. */
function show(step: Step | undefined): string {
  if (!step) return 'rest';
  if (step.kind === 'prefill') {
    const chunks = step.chunks.map(({ sequence, tokens }) => `${sequence.generation.request.id}:${tokens}`);
    return ['prefill', ...chunks].join(' ');
  }
  return [
    'decode',
    ...step.chunks.map(({ sequence, tokens }) => (tokens > 0 ? sequence.generation.request.id : '-')),
  ].join(' ');
}

function steps(scheduler: Scheduler, count: number): string[] {
  return Array.from({ length: count }, () => show(advance(scheduler)));
}

function finish(scheduler: Scheduler, entry: Generation) {
  return scheduler.finish(entry, entry.choices[0]!);
}

describe('order', () => {
  it('interactive goes before batch, the oldest first within either', () => {
    const scheduler = build({ slots: 1 });
    const entries = [
      generation('batch1', 90, { priority: 'batch' }),
      generation('batch2', 90, { priority: 'batch' }),
      generation('chat1', 90),
      generation('chat2', 90),
    ];
    for (const entry of entries) expect(scheduler.enqueue(entry)).toBeUndefined();
    const order: string[] = [];
    while (scheduler.busy) {
      order.push(show(advance(scheduler)));
      const running = scheduler.rows[0]!.generation;
      finish(scheduler, running);
    }
    expect(order).toEqual(['prefill chat1:90', 'prefill chat2:90', 'prefill batch1:90', 'prefill batch2:90']);
  });

  it('a freed slot goes to the oldest waiting request', () => {
    const scheduler = build({ slots: 2 });
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id) => generation(id, 10));
    for (const entry of [a!, b!, c!, d!]) scheduler.enqueue(entry);
    expect(steps(scheduler, 2)).toEqual(['prefill a:10 b:10', 'decode a b']);
    expect(scheduler.waiting).toBe(2);
    finish(scheduler, a!);
    expect(steps(scheduler, 2)).toEqual(['prefill c:10', 'decode b c']);
    expect(scheduler.waiting).toBe(1);
  });

  it('a large request is not passed by small ones that would fit', () => {
    const scheduler = build({ kvBytes: 400 });
    const small = Array.from({ length: 6 }, (_, index) => generation(`s${index}`, 91));
    scheduler.enqueue(small[0]!);
    scheduler.enqueue(small[1]!);
    scheduler.enqueue(generation('large', 291));
    for (const entry of small.slice(2)) scheduler.enqueue(entry);
    expect(steps(scheduler, 3)).toEqual(['prefill s0:91', 'decode s0', 'prefill s1:91']);
    expect(steps(scheduler, 2)).toEqual(['decode s0 s1', 'decode s0 s1']);
    finish(scheduler, small[0]!);
    expect(steps(scheduler, 1)).toEqual(['decode s1']);
    finish(scheduler, small[1]!);
    expect(steps(scheduler, 4)).toEqual([
      'prefill large:100',
      'prefill large:100',
      'prefill large:91',
      'decode large',
    ]);
  });

  it('batch requests do not take what an interactive one waits for', () => {
    const scheduler = build({ slots: 3 });
    scheduler.enqueue(generation('a', 90));
    scheduler.enqueue(generation('b', 90));
    expect(steps(scheduler, 3)).toEqual(['prefill a:90', 'decode a', 'prefill b:90']);
    scheduler.enqueue(generation('batch', 10, { priority: 'batch' }));
    scheduler.enqueue(generation('two', 10, { choices: 2 }));
    expect(steps(scheduler, 2)).toEqual(['decode a b', 'decode a b']);
    expect(scheduler.waiting).toBe(2);
  });

  it('an interactive prompt goes before the rest of a batch prompt', () => {
    const scheduler = build();
    scheduler.enqueue(generation('batch', 250, { priority: 'batch' }));
    expect(steps(scheduler, 1)).toEqual(['prefill batch:100']);
    scheduler.enqueue(generation('chat', 40));
    expect(steps(scheduler, 5)).toEqual([
      'prefill chat:40',
      'decode - chat',
      'prefill batch:100',
      'decode - chat',
      'prefill batch:50',
    ]);
  });
});

describe('prefill', () => {
  it('of a long prompt is cut into the budget, and decoding goes on between the parts', () => {
    const scheduler = build();
    scheduler.enqueue(generation('a', 20));
    expect(steps(scheduler, 2)).toEqual(['prefill a:20', 'decode a']);
    scheduler.enqueue(generation('long', 230));
    expect(steps(scheduler, 7)).toEqual([
      'prefill long:100',
      'decode a',
      'prefill long:100',
      'decode a',
      'prefill long:30',
      'decode a long',
      'decode a long',
    ]);
  });

  it('of several short prompts is one step, within the budget with its padding', () => {
    const scheduler = build({ slots: 8 });
    for (const [id, length] of Object.entries({ a: 20, b: 24, c: 22, d: 23, e: 20 })) {
      scheduler.enqueue(generation(id, length));
    }
    expect(steps(scheduler, 3)).toEqual(['prefill a:20 b:24 c:22 d:23', 'decode a b c d', 'prefill e:20']);
  });

  it('of a short and a much longer prompt is two steps: padding costs more than a run', () => {
    const scheduler = build();
    scheduler.enqueue(generation('a', 48));
    scheduler.enqueue(generation('b', 2));
    expect(steps(scheduler, 3)).toEqual(['prefill a:48', 'decode a', 'prefill b:2']);
  });
});

describe('the cuts of a prompt', () => {
  it('are at the same places wherever its reading begins', () => {
    const restorable = ({ id }: GenerateRequest) => (id === 'known' ? 80 : 0);
    const scheduler = build({ cuts: new PromptCuts(40, 1), restorable });
    scheduler.enqueue(generation('known', 130));
    expect(show(advance(scheduler))).toBe('prefill known:40');
    expect(steps(scheduler, 2)).toEqual(['prefill known:10', 'decode known']);
    finish(scheduler, scheduler.rows[0]!.generation);
    scheduler.enqueue(generation('new', 130));
    expect(steps(scheduler, 4)).toEqual([
      'prefill new:40',
      'prefill new:40',
      'prefill new:40',
      'prefill new:10',
    ]);
  });

  it('leave chunks of several prompts of which the first share a step, and later ones do not', () => {
    const scheduler = build({ cuts: new PromptCuts(40, 1), maxBatchTokens: 120 });
    for (const [id, length] of Object.entries({ a: 50, b: 45, c: 52 })) {
      scheduler.enqueue(generation(id, length));
    }
    expect(steps(scheduler, 6)).toEqual([
      'prefill a:40 b:40 c:40',
      'prefill a:10',
      'decode a',
      'prefill b:5',
      'decode a b',
      'prefill c:12',
    ]);
  });

  it('keep a prompt whose beginning is cached out of the step of a short one', () => {
    const restorable = ({ id }: GenerateRequest) => (id === 'known' ? 80 : 0);
    const scheduler = build({ cuts: new PromptCuts(40, 1), restorable });
    scheduler.enqueue(generation('short', 9));
    scheduler.enqueue(generation('known', 90));
    const admitted = () =>
      advance(scheduler)?.admitted.map(({ cached, generation: { request } }) => `${request.id} at ${cached}`);
    expect(admitted()).toEqual(['short at 9']);
    expect(scheduler.waiting).toBe(1);
    expect(show(advance(scheduler))).toBe('decode short');
    expect(admitted()).toEqual(['known at 90']);
  });

  it('keep short prompts out of the step of one whose beginning is cached', () => {
    const restorable = ({ id }: GenerateRequest) => (id === 'known' ? 80 : 0);
    const scheduler = build({ cuts: new PromptCuts(40, 1), restorable });
    scheduler.enqueue(generation('known', 90));
    scheduler.enqueue(generation('a', 9));
    scheduler.enqueue(generation('b', 10));
    expect(steps(scheduler, 4)).toEqual([
      'prefill known:10',
      'decode known',
      'prefill a:9 b:10',
      'decode known a b',
    ]);
  });
});

describe('slots', () => {
  it('are kept for every choice while the prompt is read', () => {
    const scheduler = build();
    scheduler.enqueue(generation('three', 150, { choices: 3 }));
    scheduler.enqueue(generation('two', 10, { choices: 2 }));
    expect(steps(scheduler, 1)).toEqual(['prefill three:100']);
    expect(scheduler).toMatchObject({ running: 3, waiting: 1 });
    expect(steps(scheduler, 3)).toEqual([
      'prefill three:50',
      'decode three three three',
      'decode three three three',
    ]);
  });

  it('that are freed are filled by the last row', () => {
    const scheduler = build();
    const entries = ['a', 'b', 'c', 'd'].map((id) => generation(id, 10));
    for (const entry of entries) scheduler.enqueue(entry);
    advance(scheduler);
    expect(finish(scheduler, entries[1]!)).toEqual([{ from: 3, to: 1 }]);
    expect(finish(scheduler, entries[2]!)).toEqual([]);
    expect(scheduler.rows.map(({ row, generation: { request } }) => `${row}${request.id}`)).toEqual([
      '0a',
      '1d',
    ]);
  });

  it('of new choices are copies of the row that read the prompt', () => {
    const scheduler = build();
    const entry = generation('a', 10, { choices: 3 });
    scheduler.enqueue(entry);
    const step = scheduler.next();
    if (step?.kind !== 'prefill') throw new Error('expected a prefill');
    step.chunks[0]!.sequence.cached = 10;
    expect(scheduler.branch(step.chunks[0]!.sequence)).toEqual([
      { from: 0, to: 1 },
      { from: 0, to: 2 },
    ]);
    expect(scheduler.rows.map(({ cached, choice }) => [cached, choice?.index])).toEqual([
      [10, 0],
      [10, 1],
      [10, 2],
    ]);
  });
});

describe('memory', () => {
  it('is counted as rows times the longest that any of them may become', () => {
    // 'long' may come to hold 109 positions: three rows of that do not fit, two do.
    const scheduler = build({ kvBytes: 2 * 109 });
    const short = generation('short', 10);
    scheduler.enqueue(generation('long', 100));
    scheduler.enqueue(short);
    scheduler.enqueue(generation('last', 10));
    expect(steps(scheduler, 4)).toEqual([
      'prefill long:100',
      'decode long',
      'prefill short:10',
      'decode long short',
    ]);
    expect(scheduler.waiting).toBe(1);
    finish(scheduler, short);
    expect(steps(scheduler, 1)).toEqual(['prefill last:10']);
  });
});
