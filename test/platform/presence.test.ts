import { expect, test } from 'vitest';
import { presenceChannel } from '../../src/contract/names.js';
import { type Presence, presenceIntervalMs, presenceTimeoutMs } from '../../src/contract/presence.js';
import type { Channel } from '../../src/platform/backplane/backplane.js';
import { type Clock, PresenceBoard } from '../../src/platform/presence.js';
import { describeBackplanes } from '../support/backplanes.js';
import { deferred } from '../support/deferred.js';
import { engineCounters } from '../worker/support/engine-counters.js';

/** A channel that delivers at once, and can be cut. */
class TestChannel implements Channel {
  readonly #listeners = new Set<(message: string) => void>();
  up = true;

  async publish(_name: string, message: string): Promise<void> {
    if (!this.up) throw new Error('the channel is away');
    for (const listener of this.#listeners) listener(message);
  }

  async subscribe(name: string, listener: (message: string) => void) {
    expect(name).toBe(presenceChannel);
    this.#listeners.add(listener);
    return { close: async () => void this.#listeners.delete(listener) };
  }

  say(presence: Presence): Promise<void> {
    return this.publish(presenceChannel, JSON.stringify(presence));
  }
}

/** Time that passes only when told to, a presence interval at a time. */
class TestClock implements Clock {
  readonly #ticks = new Set<() => void>();
  #now = 1_000_000;
  now = () => this.#now;

  every(_ms: number, tick: () => void): () => void {
    this.#ticks.add(tick);
    return () => this.#ticks.delete(tick);
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += presenceIntervalMs) {
      this.#now += presenceIntervalMs;
      for (const tick of this.#ticks) tick();
      await new Promise(setImmediate);
    }
  }
}

const worker = (id: string, model = 'm'): Presence => ({
  role: 'worker',
  id,
  model,
  held: 0,
  running: 0,
  leaving: false,
});

async function joinAsApi(channel: Channel, clock: Clock, id = 'api'): Promise<PresenceBoard> {
  return PresenceBoard.join({ channel, clock, describe: () => ({ role: 'api', id }) });
}

test('a worker is known by its model as it last described itself', async () => {
  const channel = new TestChannel();
  const board = await joinAsApi(channel, new TestClock());
  await channel.say(worker('w1'));
  await channel.say({ ...worker('w1'), held: 3, running: 2 } as Presence);
  await channel.say(worker('w2', 'other'));
  expect(board.workersOf('m')).toEqual([expect.objectContaining({ id: 'w1', held: 3, running: 2 })]);
  expect(board.isAlive('w2')).toBe(true);
  expect(board.isAlive('w3')).toBe(false);
});

test('a process announces itself as long as it is there', async () => {
  const [channel, clock] = [new TestChannel(), new TestClock()];
  let held = 0;
  await PresenceBoard.join({
    channel,
    clock,
    describe: () => ({ role: 'worker', id: 'w', model: 'm', held, running: 0 }),
  });
  const board = await joinAsApi(channel, clock);
  held = 5;
  await clock.pass(3 * presenceTimeoutMs);
  expect(board.workersOf('m')).toEqual([expect.objectContaining({ id: 'w', held: 5 })]);
});

test('a newcomer learns of the others without waiting', async () => {
  const [channel, clock] = [new TestChannel(), new TestClock()];
  await joinAsApi(channel, clock, 'first');
  const newcomer = await joinAsApi(channel, clock, 'second');
  expect(newcomer.isAlive('first')).toBe(true);
});

test('a silent process is gone after the timeout and not before', async () => {
  const [channel, clock] = [new TestChannel(), new TestClock()];
  const board = await joinAsApi(channel, clock);
  const gone: string[] = [];
  board.onGone(({ id }) => gone.push(id));
  await channel.say(worker('w'));
  await clock.pass(presenceTimeoutMs);
  expect(board.isAlive('w')).toBe(true);
  await clock.pass(presenceIntervalMs);
  expect(board.isAlive('w')).toBe(false);
  expect(board.workersOf('m')).toEqual([]);
  expect(gone).toEqual(['w']);
});

test('a last word is believed at once', async () => {
  const channel = new TestChannel();
  const board = await joinAsApi(channel, new TestClock());
  const gone: string[] = [];
  board.onGone(({ id }) => gone.push(id));
  await channel.say(worker('w'));
  await channel.say({ ...worker('w'), leaving: true });
  expect(board.isAlive('w')).toBe(false);
  expect(gone).toEqual(['w']);
});

test('leaving says the last word and nothing after it', async () => {
  const [channel, clock] = [new TestChannel(), new TestClock()];
  const leaver = await joinAsApi(channel, clock, 'leaver');
  const board = await joinAsApi(channel, clock, 'stayer');
  await leaver.leave();
  expect(board.isAlive('leaver')).toBe(false);
  await leaver.announce();
  await clock.pass(presenceIntervalMs);
  expect(board.isAlive('leaver')).toBe(false);
});

test('an outage of the channel is nobody’s death', async () => {
  const [channel, clock] = [new TestChannel(), new TestClock()];
  const board = await joinAsApi(channel, clock);
  await channel.say(worker('w'));
  channel.up = false;
  await clock.pass(10 * presenceTimeoutMs);
  expect(board.isAlive('w')).toBe(true);
});

test('after an outage everyone has the full time to be heard again', async () => {
  const [channel, clock] = [new TestChannel(), new TestClock()];
  const board = await joinAsApi(channel, clock);
  await channel.say(worker('quick'));
  await channel.say(worker('dead'));
  channel.up = false;
  await clock.pass(10 * presenceTimeoutMs);
  channel.up = true;
  await clock.pass(presenceTimeoutMs);
  expect([board.isAlive('quick'), board.isAlive('dead')]).toEqual([true, true]);
  await channel.say(worker('quick'));
  await clock.pass(2 * presenceIntervalMs);
  expect([board.isAlive('quick'), board.isAlive('dead')]).toEqual([true, false]);
});

test('a worker’s word of its engine is passed on', async () => {
  const channel = new TestChannel();
  const board = await joinAsApi(channel, new TestClock());
  await channel.say({ ...worker('w'), engine: engineCounters() } as Presence);
  expect(board.workersOf('m')).toEqual([expect.objectContaining({ id: 'w', engine: engineCounters() })]);
});

test('what is no presence is ignored', async () => {
  const channel = new TestChannel();
  const board = await joinAsApi(channel, new TestClock());
  await channel.publish(presenceChannel, 'not JSON');
  await channel.publish(presenceChannel, JSON.stringify({ role: 'guest', id: 'g', leaving: false }));
  expect(board.isAlive('g')).toBe(false);
});

test('a listener that was stopped hears nothing', async () => {
  const channel = new TestChannel();
  const board = await joinAsApi(channel, new TestClock());
  const gone: string[] = [];
  const stop = board.onGone(({ id }) => gone.push(id));
  stop();
  await channel.say(worker('w'));
  await channel.say({ ...worker('w'), leaving: true });
  expect(gone).toEqual([]);
});

describeBackplanes('presence', (kit) => {
  test('processes see each other come and go', async () => {
    const [one, two] = [await kit.open(), await kit.open()];
    const board = await PresenceBoard.join({
      channel: one.channel,
      describe: () => ({ role: 'api', id: 'a' }),
    });
    const gone = deferred<Presence>();
    board.onGone(gone.resolve);
    const other = await PresenceBoard.join({
      channel: two.channel,
      describe: () => ({ role: 'worker', id: 'w', model: 'm', held: 1, running: 1 }),
    });
    await expect.poll(() => board.workersOf('m')).toMatchObject([{ id: 'w', held: 1 }]);
    await expect.poll(() => other.isAlive('a')).toBe(true);
    await other.leave();
    expect(await gone.promise).toMatchObject({ id: 'w', leaving: true });
    await board.leave();
  });
});
