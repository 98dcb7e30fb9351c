import { once } from 'node:events';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { Replies, type ReplyTiming } from '../../src/api/replies.js';
import { ClientGone, type Reply } from '../../src/api/reply.js';
import { ServiceError } from '../../src/contract/errors.js';
import type { Frame } from '../../src/contract/frame.js';
import type { Job } from '../../src/contract/job.js';
import { controlChannel, replyChannel } from '../../src/contract/names.js';
import type { JobQueue } from '../../src/platform/backplane/backplane.js';
import { jobFor } from '../support/jobs.js';
import { MemoryBackplane } from '../support/memory-backplane.js';

const quick: Partial<ReplyTiming> = {
  watchMs: 5,
  silenceMs: 15,
  outageMs: 30,
  releaseMs: 1_000,
  recancelMs: 5,
};
const spent = { promptTokens: 4, completionTokens: 2, cachedTokens: 0 };

/** A memory backplane whose queue of model `m` can be told what to answer. */
class ScriptedBackplane extends MemoryBackplane {
  readonly asked: string[] = [];
  state: JobQueue['state'] | undefined;

  override queue(modelId: string) {
    const queue = super.queue(modelId);
    const original = Object.getPrototypeOf(queue).state.bind(queue);
    queue.state = async (id) => {
      this.asked.push(id);
      return (this.state ?? original)(id);
    };
    return queue;
  }
}

const opened: Replies[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((replies) => replies.close({ graceMs: 0 })));
});

async function open(timing: Partial<ReplyTiming> = quick, backplane = new ScriptedBackplane()) {
  const logger = pino({ level: 'silent' });
  const replies = await Replies.open({ apiId: 'api', backplane, logger, timing });
  opened.push(replies);
  const send = (...frames: Frame[]) =>
    backplane.channel.publish(replyChannel('api'), JSON.stringify({ frames }));
  return { replies, backplane, send };
}

async function enqueue(
  replies: Replies,
  backplane: MemoryBackplane,
  fields: Partial<Job> = {},
): Promise<Reply> {
  const job = jobFor('m', { replyTo: 'api', ...(fields as object) });
  const reply = replies.register(job);
  reply.follow(backplane.queue('m').add(job));
  await reply.enqueued;
  return reply;
}

const started = (id: string): Frame => ({
  type: 'started',
  id,
  attempt: 1,
  sequence: 0,
  workerId: 'w',
  queueMs: 1,
});
const cancelled = (id: string): Frame => ({
  type: 'cancelled',
  id,
  attempt: 1,
  sequence: 1,
  spent,
  timings: { queueMs: 1, firstTokenMs: null, totalMs: 2 },
});

async function failureOf(reply: Reply): Promise<unknown> {
  if (!reply.signal.aborted) await once(reply.signal, 'abort');
  return reply.signal.reason;
}

describe('frames of one message', () => {
  it('go to the requests they name, and those of unknown requests to nobody', async () => {
    const { replies, send } = await open({});
    const [a, b] = [replies.register(jobFor('m', { id: 'a' })), replies.register(jobFor('m', { id: 'b' }))];
    await send(started('b'), started('nobody'), started('a'));
    for (const [reply, id] of [
      [a, 'a'],
      [b, 'b'],
    ] as const) {
      expect((await reply[Symbol.asyncIterator]().next()).value).toEqual([started(id)]);
    }
  });

  it('that cannot be read leave the others alone', async () => {
    const { replies, backplane, send } = await open({});
    const reply = replies.register(jobFor('m', { id: 'a' }));
    await backplane.channel.publish(replyChannel('api'), 'not JSON');
    await backplane.channel.publish(replyChannel('api'), '{"frames":[{"type":"surprise"}]}');
    await send(started('a'));
    expect((await reply[Symbol.asyncIterator]().next()).value).toEqual([started('a')]);
  });
});

describe('a request that is dropped', () => {
  it('leaves the queue at once while it waits', async () => {
    const { replies, backplane } = await open();
    const reply = await enqueue(replies, backplane);
    reply.drop(new ClientGone());
    expect(await reply.ending).toMatchObject({ reason: 'cancelled', spent: { completionTokens: 0 } });
    expect(backplane.queue('m').waiting).toEqual([]);
    expect(replies.size).toBe(0);
  });

  it('is told to its worker, again and again until the worker says that it has let go', async () => {
    const { replies, backplane, send } = await open();
    const heard: string[] = [];
    let thirdTime = () => {};
    const third = new Promise<void>((resolve) => {
      thirdTime = resolve;
    });
    await backplane.channel.subscribe(controlChannel('m'), (message) => {
      heard.push(message);
      if (heard.length === 3) thirdTime();
    });
    await backplane.consume('m', () => new Promise(() => {}), { concurrency: 1 });
    const reply = await enqueue(replies, backplane);
    await send(started(reply.id));
    reply.drop(new ClientGone());
    await third;
    expect(new Set(heard)).toEqual(new Set([JSON.stringify({ type: 'cancel', id: reply.id })]));
    await send(cancelled(reply.id));
    expect(await reply.ending).toMatchObject({ reason: 'cancelled', spent });
  });

  it('is forgotten when no worker answers in time', async () => {
    const { replies, backplane } = await open({ ...quick, releaseMs: 20 });
    await backplane.consume('m', () => new Promise(() => {}), { concurrency: 1 });
    const reply = await enqueue(replies, backplane);
    reply.drop(new ClientGone());
    expect(await reply.ending).toMatchObject({ reason: 'cancelled' });
    expect(replies.size).toBe(0);
  });

  it('before it was in the queue leaves it as soon as it is', async () => {
    const { replies, backplane } = await open();
    const job = jobFor('m');
    const reply = replies.register(job);
    let store = () => {};
    reply.follow(
      new Promise<void>((resolve) => {
        store = resolve;
      }).then(() => backplane.queue('m').add(job)),
    );
    reply.drop(new ClientGone());
    store();
    await reply.ending;
    expect(backplane.queue('m').waiting).toEqual([]);
  });
});

describe('the deadline', () => {
  it('fails the request and takes it out of the queue', async () => {
    const { replies, backplane } = await open({});
    const reply = await enqueue(replies, backplane, { deadlineAt: Date.now() + 20 });
    expect(await failureOf(reply)).toMatchObject({ kind: 'deadlineExceeded' });
    await reply.ending;
    expect(backplane.queue('m').waiting).toEqual([]);
  });
});

describe('a silent request', () => {
  it('fails when its job is gone', async () => {
    const { replies, backplane } = await open();
    backplane.state = async () => 'gone';
    const reply = await enqueue(replies, backplane);
    expect(await failureOf(reply)).toMatchObject({
      kind: 'overloaded',
      message: expect.stringContaining('lost'),
    });
    expect(backplane.asked.filter((id) => id === reply.id).length).toBeGreaterThan(1);
  });

  it.each(['waiting', 'active'] as const)('goes on waiting while its job is %s', async (state) => {
    const { replies, backplane } = await open();
    let asked = 0;
    const reply = await new Promise<Reply>((resolve) => {
      backplane.state = async () => {
        if (++asked === 4) resolve(replyPromise);
        return state;
      };
      const replyPromise = enqueue(replies, backplane);
    });
    expect(reply.state).toBe('open');
  });

  it('whose last frames arrive after its job has ended is answered', async () => {
    const { replies, backplane, send } = await open();
    const reply = await enqueue(replies, backplane);
    let asked = 0;
    backplane.state = async () => {
      if (++asked === 1) await send(started(reply.id));
      return asked === 1 ? 'gone' : 'active';
    };
    const frames = await reply[Symbol.asyncIterator]().next();
    expect(frames.value).toEqual([started(reply.id)]);
    expect(reply.state).toBe('open');
  });

  it('fails when the queue does not answer for long', async () => {
    const { replies, backplane } = await open();
    backplane.state = async () => {
      throw new Error('away');
    };
    const reply = await enqueue(replies, backplane);
    expect(await failureOf(reply)).toMatchObject({ kind: 'overloaded' });
  });
});

describe('closing', () => {
  it('fails what is left and waits to hear what it cost', async () => {
    const { replies, backplane, send } = await open();
    await backplane.consume('m', () => new Promise(() => {}), { concurrency: 1 });
    const reply = await enqueue(replies, backplane);
    await send(started(reply.id));
    await backplane.channel.subscribe(controlChannel('m'), () => void send(cancelled(reply.id)));
    await replies.close({ graceMs: 10_000 });
    expect(reply.signal.reason).toBeInstanceOf(ServiceError);
    expect(await reply.ending).toMatchObject({ reason: 'overloaded', spent });
  });
});
