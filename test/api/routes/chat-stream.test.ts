import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorBody } from '../../support/error-body.js';
import { bodyOf, bodyUntil, listen, responseTo, sendChat } from '../support/sockets.js';
import { chatRequest, startTestService, type TestService } from '../support/test-app.js';

let service: TestService;
let port: number;
beforeEach(async () => {
  service = await startTestService({ timing: { keepAliveMs: 20 } });
  port = await listen(service.app);
});
afterEach(() => service.close());

const stream = { stream: true };

function dataOf(body: string): string[] {
  return body
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length));
}

describe('a stream', () => {
  it('has the headers that keep it a stream through proxies', async () => {
    const sent = sendChat(port, stream);
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    const { headers, statusCode } = await responseTo(sent);
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-headrace-queue-ms': '1.5',
      'x-request-id': expect.any(String),
    });
    sent.destroy();
    await run.cancelled;
    await run.cancel({});
  });

  it('brings each piece of text as it comes, and ends with [DONE]', async () => {
    const sent = sendChat(port, stream);
    const run = await service.chat.next();
    await run.start();
    await run.text('Hel');
    const response = await responseTo(sent);
    const first = await bodyUntil(response, 'Hel');
    expect(first).not.toContain('[DONE]');
    const rest = bodyOf(response);
    await run.text('lo');
    await run.finish();
    const data = dataOf(await rest);
    expect(JSON.parse(data[0]!).choices).toEqual([
      { index: 0, delta: { content: 'lo' }, finish_reason: null },
    ]);
    expect(JSON.parse(data[1]!)).toMatchObject({
      id: run.job.id,
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
      usage: { total_tokens: 11 },
    });
    expect(data[2]).toBe('[DONE]');
    expect(data).toHaveLength(3);
  });

  it('includes a chunk of usage before [DONE] when asked to', async () => {
    const answer = service.app.inject(chatRequest({ ...stream, stream_options: { include_usage: true } }));
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    await run.finish();
    const data = dataOf((await answer).body);
    expect(JSON.parse(data.at(-2)!)).toMatchObject({ choices: [], usage: { total_tokens: 11 } });
  });

  it('leaves the connection open for the next request', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const url = `http://127.0.0.1:${port}`;
    const sockets = new Set();
    for (let i = 0; i < 2; i++) {
      const { headers, payload } = chatRequest(stream);
      const sent = request(`${url}/v1/chat/completions`, {
        method: 'POST',
        agent,
        headers: { ...headers, 'content-type': 'application/json' },
      });
      sent.end(JSON.stringify(payload));
      const run = await service.chat.next();
      await run.start();
      await run.finish();
      const response = await responseTo(sent);
      expect(response.headers.connection).toBe('keep-alive');
      sockets.add(response.socket);
      expect(await bodyOf(response)).toContain('[DONE]');
    }
    agent.destroy();
    expect(sockets.size).toBe(1);
  });

  it('sends a comment when nothing was for a while, in the queue and between tokens', async () => {
    const sent = sendChat(port, stream);
    const response = await responseTo(sent);
    expect(response.statusCode).toBe(200);
    await bodyUntil(response, ': keep-alive\n\n');
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    await bodyUntil(response, '"a"');
    await bodyUntil(response, ': keep-alive\n\n');
    const rest = bodyOf(response);
    await run.finish();
    expect(await rest).toContain('[DONE]');
  });

  it('starts afresh when its job is run again after a comment', async () => {
    const response = await responseTo(sendChat(port, stream));
    await bodyUntil(response, ': keep-alive\n\n');
    const run = await service.chat.next();
    await run.start();
    await run.restart();
    const rest = bodyOf(response);
    await run.text('a');
    await run.finish();
    expect(await rest).toContain('[DONE]');
  });
});

describe('a stream that fails', () => {
  it('before its first event is an ordinary error', async () => {
    const quiet = await startTestService();
    const answer = quiet.app.inject(chatRequest(stream));
    const run = await quiet.chat.next();
    await run.start();
    await run.fail('overloaded', 'No memory is left.');
    const response = await answer;
    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
    expect(response.json()).toEqual(errorBody(50505, 'No memory is left.'));
    await quiet.close();
  });

  it('after its first event ends with the error and without [DONE]', async () => {
    const sent = sendChat(port, stream);
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    const response = await responseTo(sent);
    const body = bodyOf(response);
    await run.fail('internal', 'a tensor is missing');
    const data = dataOf(await body);
    expect(JSON.parse(data.at(-1)!)).toEqual(errorBody(50500, 'Unknown error.'));
    expect(response.complete).toBe(true);
    const [entry] = await service.database.entriesWritten();
    expect(entry).toMatchObject({ finishReason: 'internal', status: 200 });
  });

  it('because its worker was lost in the middle says so', async () => {
    const sent = sendChat(port, stream);
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    const response = await responseTo(sent);
    const body = bodyOf(response);
    await run.restart();
    const data = dataOf(await body);
    expect(JSON.parse(data.at(-1)!)).toEqual(
      errorBody(50505, 'The model worker was lost in the middle of the reply.'),
    );
    await run.cancelled;
    await run.cancel({});
  });

  it('because frames were lost ends with an error', async () => {
    const sent = sendChat(port, stream);
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    const body = bodyOf(await responseTo(sent));
    run.loseFrame();
    await run.text('c');
    expect(JSON.parse(dataOf(await body).at(-1)!)).toMatchObject({ code: 50500 });
    await run.cancelled;
    await run.cancel({});
  });
});

describe('a client that does not read', () => {
  it('has its request cancelled, and its connection closed, before much is kept for it', async () => {
    const sent = sendChat(port, stream);
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    const response = await responseTo(sent);
    response.pause();
    const text = 'x'.repeat(1 << 16);
    let cancelled = false;
    void run.cancelled.then(() => {
      cancelled = true;
    });
    let sentBytes = 0;
    while (!cancelled && sentBytes < 1 << 28) {
      await run.text(text);
      sentBytes += text.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await run.cancel({ completionTokens: 1 });
    const [entry] = await service.database.entriesWritten();
    expect(entry).toMatchObject({ finishReason: 'overloaded', completionTokens: 1 });
    response.resume();
    await once(response, 'close');
  });
});

describe('a client that goes away', () => {
  it.each([
    ['in the middle of its stream', true],
    ['before its stream has begun', false],
  ])('%s is no error of the service', async (_when, begun) => {
    const sent = sendChat(port, stream);
    const run = await service.chat.next();
    await run.start();
    if (begun) {
      await run.text('a');
      await responseTo(sent);
    }
    sent.destroy();
    await run.cancelled;
    await run.cancel({});
    await service.database.entriesWritten();
    expect(service.log.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  });
});
