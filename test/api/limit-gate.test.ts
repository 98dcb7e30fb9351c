import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { LimitGate } from '../../src/api/limit-gate.js';
import type { EndedRequest, LimitedRequest, LimitStore, LimitVerdict } from '../../src/api/limit-store.js';

const verdict: LimitVerdict = {
  refused: undefined,
  requests: undefined,
  tokens: undefined,
  at: new Date('2026-03-04T10:20:30Z'),
};
const lane = { accountId: 'a', model: 'm', operation: 'chat', defaults: {} } as const;
const ask = (): LimitedRequest => ({ id: randomUUID(), keyId: 'k', endUser: null, tokens: 1, images: 0 });

/** A store that answers when the test says so. */
class SlowStore implements LimitStore {
  readonly batches: number[] = [];
  readonly settled: EndedRequest[] = [];
  readonly calls: string[] = [];
  settleFailures = 0;
  sweepable = 0;
  readonly #answers: (() => void)[] = [];

  async reserve(_lane: unknown, requests: readonly LimitedRequest[]): Promise<LimitVerdict[]> {
    this.batches.push(requests.length);
    await new Promise<void>((resolve) => this.#answers.push(resolve));
    return requests.map(() => verdict);
  }
  async settle(_lane: unknown, ended: readonly EndedRequest[]): Promise<void> {
    if (this.settleFailures-- > 0) throw new Error('away');
    this.settled.push(...ended);
  }
  async beat(): Promise<void> {
    this.calls.push('beat');
  }
  async leave(): Promise<void> {
    this.calls.push('leave');
  }
  async sweep(): Promise<number> {
    this.calls.push('sweep');
    return this.sweepable;
  }
  answer(): void {
    this.#answers.shift()!();
  }
}

function open(timing: ConstructorParameters<typeof LimitGate>[0]['timing'] = {}) {
  const store = new SlowStore();
  const logger = pino({ level: 'silent' });
  return { store, gate: new LimitGate({ apiId: 'api', store, logger, timing: { retryMs: 1, ...timing } }) };
}

describe('requests of one account and model', () => {
  it('that come while a call is under way go together into the next', async () => {
    const { gate, store } = open();
    const verdicts = Array.from({ length: 50 }, () => gate.reserve(lane, ask()));
    store.answer();
    await verdicts[0];
    store.answer();
    await Promise.all(verdicts);
    expect(store.batches).toEqual([1, 49]);
  });

  it('of other accounts do not wait for it', () => {
    const { gate, store } = open();
    void gate.reserve(lane, ask());
    void gate.reserve({ ...lane, accountId: 'b' }, ask());
    void gate.reserve({ ...lane, model: 'n' }, ask());
    expect(store.batches).toEqual([1, 1, 1]);
  });
});

it('a store that does not answer makes the service overloaded, and nothing stays reserved', async () => {
  const { gate, store } = open({ reserveTimeoutMs: 1 });
  const request = ask();
  await expect(gate.reserve(lane, request)).rejects.toMatchObject({ kind: 'overloaded' });
  await gate.close({ graceMs: 5_000 });
  expect(store.settled).toMatchObject([{ id: request.id, tokens: 0 }]);
});

it('what could not be settled is settled when the store is back', async () => {
  const { gate, store } = open();
  store.settleFailures = 2;
  gate.settle(lane, { id: 'one', tokens: 5 });
  gate.settle(lane, { id: 'two', tokens: 6 });
  await expect.poll(() => store.settled.map(({ id }) => id)).toEqual(['one', 'two']);
});

it('closing settles what has ended before it says goodbye', async () => {
  const { gate, store } = open();
  await gate.open();
  gate.settle(lane, { id: 'one', tokens: 5 });
  await gate.close({ graceMs: 5_000 });
  expect(store.settled).toMatchObject([{ id: 'one', tokens: 5 }]);
  expect(store.calls.at(-1)).toBe('leave');
});

it('sweeps only once it was heard for as long as it takes to be dead', async () => {
  const { gate, store } = open({ beatMs: 1, silenceMs: 30 });
  await gate.open();
  expect(store.calls).toEqual(['beat']);
  await expect.poll(() => store.calls).toContain('sweep');
  await gate.close({ graceMs: 5_000 });
});
