import { describe, expect, test, vi } from 'vitest';
import { type Frame, frameMessageSchema } from '../../src/contract/frame.js';
import { replyChannel } from '../../src/contract/names.js';
import type { Channel } from '../../src/platform/backplane/backplane.js';
import { createLogger } from '../../src/platform/logger.js';
import { type FrameBody, Publisher } from '../../src/worker/publish.js';

type Publish = Channel['publish'];

function open(publish: Publish, patience: { patienceMs?: number } = {}) {
  const messages: { name: string; frames: Frame[] }[] = [];
  const publisher = new Publisher({
    channel: {
      publish: async (name, message) => {
        await publish(name, message);
        messages.push({ name, frames: frameMessageSchema.parse(JSON.parse(message)).frames });
      },
      subscribe: () => Promise.reject(new Error('A publisher does not listen.')),
    },
    logger: createLogger({ level: 'silent', name: 'test' }),
    maxPauseMs: 1,
    ...patience,
  });
  const reply = (id: string, replyTo = 'api', onLost = () => {}) =>
    publisher.reply({ id, attempt: 1, replyTo, onLost });
  return { publisher, messages, reply };
}

const delta = (text: string): FrameBody => ({ type: 'delta', choice: 0, text, tokens: 1 });
const texts = (frames: Frame[]) => frames.map((frame) => (frame.type === 'delta' ? frame.text : frame.type));

test('frames carry the request, the attempt and numbers without a gap', async () => {
  const { publisher, messages } = open(async () => {});
  const reply = publisher.reply({ id: 'a', attempt: 3, replyTo: 'api', onLost: () => {} });
  reply.send(delta('x'));
  await reply.delivered();
  reply.send(delta('y'));
  await reply.delivered();
  expect(messages.flatMap(({ frames }) => frames)).toMatchObject([
    { id: 'a', attempt: 3, sequence: 0, text: 'x' },
    { id: 'a', attempt: 3, sequence: 1, text: 'y' },
  ]);
});

test('what is said in one turn to one process is one message', async () => {
  const { messages, reply } = open(async () => {});
  const [a, b, c] = [reply('a'), reply('b'), reply('c', 'other')];
  a.send(delta('1'));
  b.send(delta('2'));
  c.send(delta('3'));
  a.send(delta('4'));
  await Promise.all([a, b, c].map((each) => each.delivered()));
  expect(messages.map(({ name, frames }) => [name, texts(frames)])).toEqual([
    [replyChannel('api'), ['1', '2', '4']],
    [replyChannel('other'), ['3']],
  ]);
});

test('messages to one process leave one after the other', async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const publish = vi.fn<Publish>().mockReturnValueOnce(held).mockResolvedValue();
  const { messages, reply } = open(publish);
  const a = reply('a');
  a.send(delta('1'));
  await vi.waitFor(() => expect(publish).toHaveBeenCalledTimes(1));
  a.send(delta('2'));
  a.send(delta('3'));
  await new Promise(setImmediate);
  expect(publish).toHaveBeenCalledTimes(1);
  release();
  await a.delivered();
  expect(messages.map(({ frames }) => texts(frames))).toEqual([['1'], ['2', '3']]);
});

test('delivered waits for the frames sent so far, not for those of others after them', async () => {
  const publish = vi
    .fn<Publish>()
    .mockResolvedValueOnce()
    .mockReturnValue(new Promise(() => {}));
  const { reply } = open(publish, { patienceMs: 1_000_000 });
  const [a, b] = [reply('a'), reply('b')];
  a.send(delta('1'));
  await a.delivered();
  b.send(delta('2'));
  await expect(a.delivered()).resolves.toBeUndefined();
});

test('nothing is kept once all is sent', async () => {
  const { publisher, reply } = open(async () => {});
  const a = reply('a');
  a.send(delta('1'));
  expect(publisher.busy).toBe(1);
  await a.delivered();
  await vi.waitFor(() => expect(publisher.busy).toBe(0));
});

describe('while the channel is away', () => {
  const away = new Error('connection refused');

  test('frames wait in order until it is back', async () => {
    const publish = vi
      .fn<Publish>()
      .mockRejectedValueOnce(away)
      .mockRejectedValueOnce(away)
      .mockResolvedValue();
    const onLost = vi.fn();
    const { messages, reply } = open(publish);
    const a = reply('a', 'api', onLost);
    a.send(delta('1'));
    await vi.waitFor(() => expect(publish).toHaveBeenCalled());
    a.send(delta('2'));
    await a.delivered();
    expect(messages.flatMap(({ frames }) => texts(frames))).toEqual(['1', '2']);
    expect(onLost).not.toHaveBeenCalled();
  });

  test.each([
    ['refuses', () => Promise.reject(away)],
    ['hangs', () => new Promise<void>(() => {})],
  ])(
    'requests whose frames it %s for too long are told, once delivery is given up',
    async (_how, publish) => {
      const lost: string[] = [];
      const { publisher, reply } = open(publish, { patienceMs: 5 });
      const [a, b] = ['a', 'b'].map((id) => reply(id, 'api', () => lost.push(id)));
      a!.send(delta('1'));
      b!.send(delta('2'));
      await Promise.all([a!.delivered(), b!.delivered()]);
      expect(lost).toEqual(['a', 'b']);
      await vi.waitFor(() => expect(publisher.busy).toBe(0));
    },
  );

  test('a message that only hangs is not sent twice', async () => {
    const publish = vi.fn<Publish>().mockReturnValue(new Promise(() => {}));
    const { reply } = open(publish, { patienceMs: 5 });
    const a = reply('a');
    a.send(delta('1'));
    await a.delivered();
    expect(publish).toHaveBeenCalledTimes(1);
  });
});
