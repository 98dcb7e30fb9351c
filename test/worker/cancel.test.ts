import { expect, test } from 'vitest';
import { controlChannel } from '../../src/contract/names.js';
import { createLogger } from '../../src/platform/logger.js';
import { Cancellations } from '../../src/worker/cancel.js';
import { MemoryBackplane } from '../support/memory-backplane.js';

async function listen(options: { held?: string[]; maxRemembered?: number } = {}) {
  const { channel } = new MemoryBackplane();
  const cancelled: string[] = [];
  let now = 0;
  const cancellations = await Cancellations.listen({
    channel,
    modelId: 'acme/model',
    cancelHeld: (id) => {
      cancelled.push(id);
      return options.held?.includes(id) ?? false;
    },
    clock: { now: () => now },
    logger: createLogger({ level: 'silent', name: 'test' }),
    rememberMs: 100,
    ...options,
  });
  const send = async (message: string) => {
    await channel.publish(controlChannel('acme/model'), message);
    await new Promise(setImmediate);
  };
  return {
    cancellations,
    cancelled,
    send,
    cancel: (id: string) => send(JSON.stringify({ type: 'cancel', id })),
    wait: (ms: number) => {
      now += ms;
    },
  };
}

test('a request that is held is cancelled, and not remembered', async () => {
  const { cancellations, cancelled, cancel } = await listen({ held: ['a'] });
  await cancel('a');
  expect(cancelled).toEqual(['a']);
  expect(cancellations.take('a')).toBe(false);
});

test('one that is not held is remembered until it comes', async () => {
  const { cancellations, cancel } = await listen();
  await cancel('a');
  expect([cancellations.take('a'), cancellations.take('a')]).toEqual([true, false]);
});

test('one that never comes is forgotten in time', async () => {
  const { cancellations, cancel, wait } = await listen();
  await cancel('a');
  wait(60);
  await cancel('b');
  wait(60);
  expect([cancellations.take('a'), cancellations.take('b')]).toEqual([false, true]);
});

test('only so many are remembered, the latest', async () => {
  const { cancellations, cancel } = await listen({ maxRemembered: 2 });
  for (const id of ['a', 'b', 'c']) await cancel(id);
  expect(cancellations.remembered).toBe(2);
  expect(['a', 'b', 'c'].map((id) => cancellations.take(id))).toEqual([false, true, true]);
});

test.each(['not JSON', '{"type":"dance"}'])('what cannot be read is passed over: %s', async (message) => {
  const { cancellations, send, cancel } = await listen();
  await send(message);
  await cancel('a');
  expect(cancellations.take('a')).toBe(true);
});

test('nothing is heard after the end', async () => {
  const { cancellations, cancelled, cancel } = await listen();
  await cancellations.close();
  await cancel('a');
  expect(cancelled).toEqual([]);
});
