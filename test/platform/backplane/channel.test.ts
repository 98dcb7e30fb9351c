import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { describeBackplanes } from '../../support/backplanes.js';
import { deferred } from '../../support/deferred.js';

/** Collects messages; `until(n)` resolves with the first n. */
function collector() {
  const messages: string[] = [];
  let check = () => {};
  return {
    messages,
    listener: (message: string) => {
      messages.push(message);
      check();
    },
    until(count: number): Promise<string[]> {
      const { promise, resolve } = deferred<string[]>();
      check = () => {
        if (messages.length >= count) resolve(messages.slice(0, count));
      };
      check();
      return promise;
    },
  };
}

describeBackplanes('channel', (kit) => {
  test('messages of one publisher arrive in order, also when it does not wait', async () => {
    const [sender, receiver] = [await kit.open(), await kit.open()];
    const name = `test.${randomUUID()}`;
    const { listener, until } = collector();
    await receiver.channel.subscribe(name, listener);
    const sent = Array.from({ length: 1_000 }, (_, index) => String(index));
    await Promise.all(sent.map((message) => sender.channel.publish(name, message)));
    expect(await until(sent.length)).toEqual(sent);
  });

  test('equal messages are all heard', async () => {
    const { channel } = await kit.open();
    const name = `test.${randomUUID()}`;
    const { listener, until } = collector();
    await channel.subscribe(name, listener);
    await Promise.all(['same', 'same', 'same'].map((message) => channel.publish(name, message)));
    expect(await until(3)).toEqual(['same', 'same', 'same']);
  });

  test('a message of any length and alphabet arrives whole', async () => {
    const [sender, receiver] = [await kit.open(), await kit.open()];
    const name = `test.${randomUUID()}`;
    const { listener, until } = collector();
    await receiver.channel.subscribe(name, listener);
    const messages = ['a', 'é', '水', '😀'].map((character) => character.repeat(50_000));
    messages.push('', `a${'😀'.repeat(2_000)}`);
    for (const message of messages) await sender.channel.publish(name, message);
    expect(await until(messages.length)).toEqual(messages);
  });

  test('long messages of several publishers do not mix', async () => {
    const [one, two, receiver] = [await kit.open(), await kit.open(), await kit.open()];
    const name = `test.${randomUUID()}`;
    const { listener, until } = collector();
    await receiver.channel.subscribe(name, listener);
    const messages = ['1', '2'].flatMap((digit) => Array.from({ length: 10 }, () => digit.repeat(20_000)));
    await Promise.all(
      messages.map((message) => (message.startsWith('1') ? one : two).channel.publish(name, message)),
    );
    expect((await until(messages.length)).toSorted()).toEqual(messages);
  });

  test('names that differ only after many characters are different channels', async () => {
    const { channel } = await kit.open();
    const stem = `test.${'n'.repeat(100)}.${randomUUID()}`;
    const [first, second] = [collector(), collector()];
    await channel.subscribe(`${stem}.1`, first.listener);
    await channel.subscribe(`${stem}.2`, second.listener);
    await channel.publish(`${stem}.1`, 'to the first');
    await channel.publish(`${stem}.2`, 'to the second');
    expect(await first.until(1)).toEqual(['to the first']);
    expect(await second.until(1)).toEqual(['to the second']);
  });

  test('every listener of a channel in a process hears it until its own subscription is closed', async () => {
    const { channel } = await kit.open();
    const name = `test.${randomUUID()}`;
    const [staying, leaving] = [collector(), collector()];
    await channel.subscribe(name, staying.listener);
    const subscription = await channel.subscribe(name, leaving.listener);
    await channel.publish(name, 'both');
    await Promise.all([staying.until(1), leaving.until(1)]);
    await subscription.close();
    await channel.publish(name, 'one');
    expect(await staying.until(2)).toEqual(['both', 'one']);
    expect(leaving.messages).toEqual(['both']);
  });

  test('a listener that throws costs nobody a message', async () => {
    const { channel } = await kit.open();
    const name = `test.${randomUUID()}`;
    const { listener, until } = collector();
    await channel.subscribe(name, () => {
      throw new Error('a listener with a bug');
    });
    await channel.subscribe(name, listener);
    await channel.publish(name, '1');
    await channel.publish(name, '2');
    expect(await until(2)).toEqual(['1', '2']);
  });
});
