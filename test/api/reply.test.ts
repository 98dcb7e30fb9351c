import { describe, expect, it } from 'vitest';
import { ClientGone, Reply, type ReplyFrame } from '../../src/api/reply.js';
import { ServiceError } from '../../src/contract/errors.js';
import type { Frame } from '../../src/contract/frame.js';
import type { FrameBody } from './support/fake-worker.js';

const timings = { queueMs: 3, firstTokenMs: 8, totalMs: 20 };
const spent = { promptTokens: 5, completionTokens: 2, cachedTokens: 1 };

const started: FrameBody = { type: 'started', workerId: 'w', queueMs: 3 };
const text = (value: string): FrameBody => ({ type: 'delta', choice: 0, text: value, tokens: 1 });
const finish: FrameBody = { type: 'finish', choice: 0, reason: 'length' };
const done: FrameBody = { type: 'done', spent, timings };

function frame(body: FrameBody, sequence: number, attempt = 1): Frame {
  return { ...body, id: 'r', attempt, sequence } as Frame;
}

function openReply() {
  const dropped: Reply[] = [];
  const reply = new Reply({ id: 'r', model: 'm' }, { onDrop: (one) => dropped.push(one) });
  return { reply, dropped };
}

function receive(reply: Reply, bodies: FrameBody[], attempt = 1): void {
  for (const [sequence, body] of bodies.entries()) reply.receive(frame(body, sequence, attempt));
}

async function gather(reply: Reply): Promise<ReplyFrame[]> {
  const frames: ReplyFrame[] = [];
  for await (const some of reply) frames.push(...some);
  return frames;
}

const texts = (frames: ReplyFrame[]) => frames.flatMap((one) => (one.type === 'delta' ? [one.text] : []));

describe('frames in order', () => {
  it('are handed out up to the last one', async () => {
    const { reply } = openReply();
    receive(reply, [started, text('a'), text('b'), finish, done]);
    const frames = await gather(reply);
    expect(frames.map(({ type }) => type)).toEqual(['started', 'delta', 'delta', 'finish', 'done']);
  });

  it('that come together are handed out together', async () => {
    const { reply } = openReply();
    const turn = reply[Symbol.asyncIterator]().next();
    receive(reply, [started, text('a'), text('b')]);
    expect((await turn).value).toHaveLength(3);
  });

  it('end with what the worker spent', async () => {
    const { reply } = openReply();
    receive(reply, [started, text('a'), finish, done]);
    expect(await reply.ending).toEqual({ reason: 'length', spent, queueMs: 3, firstTokenMs: 8 });
  });
});

describe('a frame that is missing', () => {
  it('fails the reply with an error that hides the details', async () => {
    const { reply, dropped } = openReply();
    receive(reply, [started, text('a')]);
    reply.receive(frame(text('c'), 3));
    await expect(gather(reply)).rejects.toMatchObject({ kind: 'internal', message: 'Unknown error.' });
    expect(dropped).toEqual([reply]);
  });

  it('at the beginning fails the reply too', async () => {
    const { reply } = openReply();
    reply.receive(frame(text('b'), 1));
    await expect(gather(reply)).rejects.toMatchObject({ kind: 'internal' });
  });
});

describe('a frame that comes twice', () => {
  it('is handed out once', async () => {
    const { reply } = openReply();
    receive(reply, [started, text('a')]);
    reply.receive(frame(text('a'), 1));
    reply.receive(frame(finish, 2));
    reply.receive(frame(done, 3));
    expect(texts(await gather(reply))).toEqual(['a']);
  });
});

describe('a job that is run again', () => {
  it('restarts the reply while nothing was sent', async () => {
    const { reply } = openReply();
    receive(reply, [started, text('old')]);
    receive(reply, [started, text('new'), finish, done], 2);
    expect(texts(await gather(reply))).toEqual(['new']);
  });

  it('tells whoever has gathered frames already with another started frame', async () => {
    const { reply } = openReply();
    const turns = reply[Symbol.asyncIterator]();
    receive(reply, [started, text('old')]);
    await turns.next();
    receive(reply, [started, text('new')], 2);
    expect((await turns.next()).value!.map(({ type }: ReplyFrame) => type)).toEqual(['started', 'delta']);
  });

  it('fails the reply once something was sent', async () => {
    const { reply, dropped } = openReply();
    receive(reply, [started, text('old')]);
    reply.commit();
    reply.receive(frame(started, 0, 2));
    await expect(gather(reply)).rejects.toMatchObject({
      kind: 'overloaded',
      message: 'The model worker was lost in the middle of the reply.',
    });
    expect(dropped).toEqual([reply]);
  });

  it('is not disturbed by what its first run still says', async () => {
    const { reply } = openReply();
    receive(reply, [started, text('old')]);
    receive(reply, [started, text('new')], 2);
    reply.receive(frame(text('late'), 2, 1));
    reply.receive(frame(finish, 2, 2));
    reply.receive(frame(done, 3, 2));
    expect(texts(await gather(reply))).toEqual(['new']);
  });

  it('fails the reply when its first frame is missing', async () => {
    const { reply } = openReply();
    receive(reply, [started, text('old')]);
    reply.receive(frame(text('b'), 1, 2));
    await expect(gather(reply)).rejects.toMatchObject({ kind: 'internal' });
  });
});

describe('a worker that cannot answer', () => {
  it('says why to the client', async () => {
    const { reply } = openReply();
    receive(reply, [
      started,
      { type: 'failed', error: 'invalidParameter', message: 'messages: too long', spent },
    ]);
    await expect(gather(reply)).rejects.toMatchObject({
      kind: 'invalidParameter',
      message: 'messages: too long',
    });
    expect(await reply.ending).toMatchObject({ reason: 'invalidParameter', spent });
  });

  it('does not show the client its own inside', async () => {
    const { reply } = openReply();
    receive(reply, [
      started,
      { type: 'failed', error: 'internal', message: '/srv/model.onnx is broken', spent },
    ]);
    await expect(gather(reply)).rejects.toMatchObject({ kind: 'internal', message: 'Unknown error.' });
  });

  it('fails the reply when it drops the request unasked', async () => {
    const { reply } = openReply();
    receive(reply, [started, { type: 'cancelled', spent, timings }]);
    await expect(gather(reply)).rejects.toMatchObject({ kind: 'overloaded' });
  });
});

describe('a reply that is dropped', () => {
  it('ends with what the worker says it had spent', async () => {
    const { reply } = openReply();
    receive(reply, [started, text('a')]);
    reply.drop(new ClientGone());
    reply.receive(frame({ type: 'cancelled', spent, timings }, 9));
    expect(await reply.ending).toEqual({ reason: 'cancelled', spent, queueMs: 3, firstTokenMs: 8 });
  });

  it('ends with the tokens that came when the worker says nothing', async () => {
    const { reply } = openReply();
    receive(reply, [started, text('a'), text('b')]);
    reply.drop(new ServiceError('deadlineExceeded'));
    reply.receive(frame(text('c'), 3));
    reply.settle();
    expect(await reply.ending).toMatchObject({
      reason: 'deadlineExceeded',
      spent: { promptTokens: 0, completionTokens: 3, cachedTokens: 0 },
    });
  });

  it('fails with the first reason that was given', async () => {
    const { reply, dropped } = openReply();
    reply.drop(new ServiceError('deadlineExceeded'));
    reply.drop(new ClientGone());
    await expect(gather(reply)).rejects.toMatchObject({ kind: 'deadlineExceeded' });
    expect(dropped).toHaveLength(1);
  });

  it('follows a queue that does not take the job', async () => {
    const { reply, dropped } = openReply();
    reply.follow(Promise.reject(new Error('the queue is away')));
    await expect(gather(reply)).rejects.toMatchObject({ kind: 'overloaded' });
    expect(dropped).toEqual([reply]);
  });

  it('happens when more text waits for a slow reader than is kept', async () => {
    const { reply } = openReply();
    receive(reply, [started, ...Array.from({ length: 20 }, () => text('x'.repeat(100_000)))]);
    await expect(gather(reply)).rejects.toMatchObject({
      kind: 'overloaded',
      message: expect.stringContaining('slow'),
    });
  });
});
