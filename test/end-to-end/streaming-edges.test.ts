import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepAliveMs } from '../../src/api/sse.js';
import { type FakeRun, noneSpent } from '../api/support/fake-worker.js';
import { dataOf, parseResponses, type RawResponse, textOf } from '../api/support/raw-responses.js';
import { listen, openSocket, rawChat, readToEnd } from '../api/support/sockets.js';
import { startTestService, type TestService } from '../api/support/test-app.js';
import { errorBody } from '../support/error-body.js';

let service: TestService;
let port: number;
beforeEach(async () => {
  service = await startTestService();
  port = await listen(service.app);
});
afterEach(() => service.close());

const stream = { stream: true };
const last = ['connection: close'];

async function responsesOn(socket: Socket): Promise<RawResponse[]> {
  return parseResponses(await readToEnd(socket));
}

async function answer(run: FakeRun, ...pieces: string[]): Promise<void> {
  await run.start();
  for (const piece of pieces) await run.text(piece);
  await run.finish();
}

/** Resolves once what the socket has brought contains `text`. */
async function heard(socket: Socket, text: string): Promise<void> {
  let bytes = Buffer.alloc(0);
  while (!bytes.includes(text)) {
    const [data] = (await once(socket, 'data')) as [Buffer];
    bytes = Buffer.concat([bytes, data]);
  }
}

describe('characters of several bytes', () => {
  const pieces = [
    '山不在高',
    '，有仙则名。',
    '👩‍👩‍👧‍👦',
    '🇨🇳',
    'é',
    'e\u0301',
    '𝒳',
    '👍🏽',
    'ﷺ',
    '\u{10FFFF}',
    '\0\u2028',
  ];

  it('are whole in every piece that the server writes, and come out as they went in', async () => {
    const socket = await openSocket(port);
    socket.write(rawChat(stream, last));
    const run = await service.chat.next();
    const responses = responsesOn(socket);
    await answer(run, ...pieces);
    const [{ chunks, body }] = (await responses) as [RawResponse];
    const strict = new TextDecoder('utf-8', { fatal: true });
    for (const chunk of chunks) expect(chunk.equals(Buffer.from(strict.decode(chunk)))).toBe(true);
    expect(chunks.length).toBeGreaterThan(1);
    expect(textOf(body)).toBe(pieces.join(''));
  });

  it('come whole also when many pieces come in one message', async () => {
    const socket = await openSocket(port);
    socket.write(rawChat(stream, last));
    const run = await service.chat.next();
    const responses = responsesOn(socket);
    await run.start();
    await run.send(...pieces.map((text) => ({ type: 'delta', choice: 0, text, tokens: 1 }) as const));
    await run.finish();
    const [{ body }] = (await responses) as [RawResponse];
    expect(dataOf(body).filter((data) => data.includes('"content"'))).toHaveLength(pieces.length);
    expect(textOf(body)).toBe(pieces.join(''));
  });

  it('may arrive one byte at a time', async () => {
    const socket = await openSocket(port);
    const content = pieces.join('');
    for (const byte of Buffer.from(rawChat({ messages: [{ role: 'user', content }] }, last))) {
      socket.write(Buffer.of(byte));
      if (byte === 0x0a) await new Promise((resolve) => setImmediate(resolve));
    }
    const run = await service.chat.next();
    expect(run.job).toMatchObject({ messages: [{ role: 'user', content }] });
    const responses = responsesOn(socket);
    await answer(run, content);
    expect(JSON.parse((await responses)[0]!.body).choices[0].message.content).toBe(content);
  });
});

describe('a client that reads nothing', () => {
  it('has its request cancelled before much is kept for it', async () => {
    const accepted = once(service.app.server, 'connection') as Promise<[Socket]>;
    const socket = await openSocket(port);
    const [serverSide] = await accepted;
    socket.pause();
    socket.write(rawChat(stream));
    const run = await service.chat.next();
    let cancelled = false;
    void run.cancelled.then(() => {
      cancelled = true;
    });
    await run.start();
    const text = '字'.repeat(1 << 14);
    let mostKept = 0;
    for (let sent = 0; !cancelled && sent < 1 << 14; sent++) {
      await run.text(text);
      await new Promise((resolve) => setImmediate(resolve));
      mostKept = Math.max(mostKept, serverSide.writableLength);
    }
    expect(cancelled).toBe(true);
    expect(mostKept).toBeLessThan(1 << 20);
    await run.cancel({ completionTokens: 3 });
    const [entry] = await service.database.entriesWritten();
    expect(entry).toMatchObject({ finishReason: 'overloaded', completionTokens: 3 });
    socket.destroy();
  });

  it('is told that it read too slowly once it reads', async () => {
    const socket = await openSocket(port);
    socket.pause();
    socket.write(rawChat(stream, last));
    const run = await service.chat.next();
    let cancelled = false;
    void run.cancelled.then(() => {
      cancelled = true;
    });
    await run.start();
    while (!cancelled) {
      await run.text('x'.repeat(1 << 16));
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.resume();
    const [{ body }] = (await responsesOn(socket)) as [RawResponse];
    expect(JSON.parse(dataOf(body).at(-1)!)).toEqual(errorBody(50505, 'The reply was read too slowly.'));
    await run.cancel({});
  });

  it('has log-probabilities that wait for it counted like text', async () => {
    const socket = await openSocket(port);
    socket.pause();
    socket.write(rawChat(stream));
    const run = await service.chat.next();
    let cancelled = false;
    void run.cancelled.then(() => {
      cancelled = true;
    });
    await run.start();
    const logprob = { token: 'a', logprob: -1, bytes: [97] };
    const logprobs = Array.from({ length: 50 }, () => ({
      ...logprob,
      top_logprobs: Array(20).fill(logprob),
    }));
    let sent = 0;
    while (!cancelled && sent < 10_000) {
      await run.send({ type: 'delta', choice: 0, text: '', tokens: 50, logprobs });
      await new Promise((resolve) => setImmediate(resolve));
      sent++;
    }
    expect(cancelled).toBe(true);
    await run.cancel({});
    socket.destroy();
  });
});

describe('a client that closes its own side after its request', () => {
  it.each([stream, { stream: false }])('and reads on gets its whole answer (%o)', async (how) => {
    const socket = await openSocket(port);
    const responses = responsesOn(socket);
    socket.end(rawChat(how));
    const run = await service.chat.next();
    await run.start();
    await run.text('one');
    await run.text(' two');
    await run.finish();
    const [{ status, body }] = (await responses) as [RawResponse];
    expect(status).toBe(200);
    const text = how.stream ? textOf(body) : JSON.parse(body).choices[0].message.content;
    expect(text).toBe('one two');
    const [entry] = await service.database.entriesWritten();
    expect(entry).toMatchObject({ finishReason: 'stop', status: 200 });
  });

  it('is asked whether it still reads while its request waits, in words that mean nothing', async () => {
    const socket = await openSocket(port);
    const asked = heard(socket, 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n');
    const responses = responsesOn(socket);
    socket.end(rawChat());
    const run = await service.chat.next();
    await asked;
    await answer(run, 'a');
    expect((await responses).map(({ status }) => status)).toEqual([200]);
  });

  it('gets the answers to all that it had asked for', async () => {
    const socket = await openSocket(port);
    const responses = responsesOn(socket);
    socket.end(rawChat() + rawChat(stream));
    const [first, second] = [await service.chat.next(), await service.chat.next()];
    await answer(second, 'two');
    await answer(first, 'one');
    const [one, two] = (await responses) as [RawResponse, RawResponse];
    expect(JSON.parse(one.body).choices[0].message.content).toBe('one');
    expect(textOf(two.body)).toBe('two');
  });

  it.each([
    ['before its first event', stream, false],
    ['in the middle of its stream', stream, true],
    ['while it waits for the whole reply', { stream: false }, true],
  ])('and then goes away %s is noticed', async (_when, how, begun) => {
    const socket = await openSocket(port);
    socket.resume();
    socket.write(rawChat(how));
    const run = await service.chat.next();
    await run.start();
    if (begun) await run.text('a');
    if (how.stream && begun) await heard(socket, '"a"');
    socket.end();
    await once(socket, 'finish');
    socket.destroy();
    await run.cancelled;
    await run.cancel({ completionTokens: 1 });
    const [entry] = await service.database.entriesWritten();
    expect(entry).toMatchObject({ finishReason: 'cancelled', status: 499, completionTokens: 1 });
  });

  it('has gone when it speaks HTTP/1.0, which knows no interim responses', async () => {
    const socket = await openSocket(port);
    const everything = readToEnd(socket);
    socket.end(rawChat().replace('HTTP/1.1', 'HTTP/1.0'));
    const run = await service.chat.next();
    await run.cancelled;
    expect(await everything).toHaveLength(0);
    await run.cancel({});
  });

  it('in the middle of its request is told so', async () => {
    const socket = await openSocket(port);
    const responses = responsesOn(socket);
    socket.end(rawChat().slice(0, -5));
    const [{ status, body }] = (await responses) as [RawResponse];
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ code: 20015, data: null });
  });
});

describe('requests one behind the other on a connection', () => {
  it.each([
    ['a stream and then a whole reply', stream, { stream: false }],
    ['a whole reply and then a stream', { stream: false }, stream],
    ['two streams', stream, stream],
  ])('are answered in their order: %s', async (_what, how, then) => {
    const socket = await openSocket(port);
    socket.write(rawChat(how) + rawChat(then, last));
    const responses = responsesOn(socket);
    const [first, second] = [await service.chat.next(), await service.chat.next()];
    await first.start();
    await first.text('one ');
    await answer(second, 'three');
    await first.text('two');
    await first.finish();
    const read = ({ body }: RawResponse, { stream: streamed }: { stream: boolean }) =>
      streamed ? textOf(body) : JSON.parse(body).choices[0].message.content;
    const [one, two] = (await responses) as [RawResponse, RawResponse];
    expect(read(one, how)).toBe('one two');
    expect(read(two, then)).toBe('three');
  });

  it('are answered also when the first one fails', async () => {
    const socket = await openSocket(port);
    socket.write(rawChat({ temperature: 9 }) + rawChat({}, last));
    const responses = responsesOn(socket);
    await answer(await service.chat.next(), 'a');
    expect((await responses).map(({ status }) => status)).toEqual([400, 200]);
  });

  it('that wait for their turn are cancelled when too much is kept for them', async () => {
    const socket = await openSocket(port);
    socket.write(rawChat() + rawChat(stream));
    const [first, second] = [await service.chat.next(), await service.chat.next()];
    await second.start();
    let cancelled = false;
    void second.cancelled.then(() => {
      cancelled = true;
    });
    for (let sent = 0; !cancelled && sent < 1_000; sent++) {
      await second.text('x'.repeat(1 << 16));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(cancelled).toBe(true);
    await second.send({ type: 'failed', error: 'overloaded', message: '', spent: noneSpent });
    second.release();
    await answer(first, 'a');
    socket.destroy();
  });
});

describe('a stream', () => {
  it('says to proxies that it must not be held back or changed', async () => {
    const socket = await openSocket(port);
    socket.write(rawChat(stream, last));
    const responses = responsesOn(socket);
    await answer(await service.chat.next(), 'a');
    const [{ headers }] = (await responses) as [RawResponse];
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'transfer-encoding': 'chunked',
    });
    expect(headers).not.toHaveProperty('content-length');
  });

  it('that fails before its first event is an ordinary response', async () => {
    const socket = await openSocket(port);
    socket.write(rawChat(stream, last));
    const responses = responsesOn(socket);
    const run = await service.chat.next();
    await run.start();
    await run.fail('overloaded', 'No memory is left.');
    const [{ status, headers, body }] = (await responses) as [RawResponse];
    expect(status).toBe(503);
    expect(headers).toMatchObject({ 'retry-after': '1', 'content-type': 'application/json; charset=utf-8' });
    expect(JSON.parse(body)).toEqual(errorBody(50505, 'No memory is left.'));
  });

  it('that fails later ends with the error as its last event, and its connection with it', async () => {
    const socket = await openSocket(port);
    socket.write(rawChat(stream));
    const responses = responsesOn(socket);
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    await run.fail('overloaded', 'No memory is left.');
    const [{ status, body }] = (await responses) as [RawResponse];
    expect(status).toBe(200);
    expect(body).not.toContain('[DONE]');
    expect(JSON.parse(dataOf(body).at(-1)!)).toEqual(errorBody(50505, 'No memory is left.'));
  });

  it('is silent for 15 seconds at most', () => {
    expect(keepAliveMs).toBe(15_000);
  });

  it('carries comments while nothing comes, which change nothing', async () => {
    const patient = await startTestService({ timing: { keepAliveMs: 10 } });
    const socket = await openSocket(await listen(patient.app));
    socket.write(rawChat(stream, last));
    const commented = heard(socket, ': keep-alive\n\n');
    const responses = responsesOn(socket);
    await commented;
    const run = await patient.chat.next();
    await answer(run, 'one', ' two');
    const [{ body }] = (await responses) as [RawResponse];
    expect(body).toMatch(/^: keep-alive\n\n/);
    expect(textOf(body)).toBe('one two');
    await patient.close();
  });
});
