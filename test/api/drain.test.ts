import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { bodyOf, listen, openSocket, rawChat, readToEnd, responseTo, sendChat } from './support/sockets.js';
import { startTestService, type TestService } from './support/test-app.js';

let service: TestService;
afterEach(() => service.close());

describe('a service that is closed', () => {
  it('lets a stream end that has begun, and writes its usage', async () => {
    service = await startTestService({ timing: { drainMs: 60_000 } });
    const sent = sendChat(await listen(service.app), { stream: true });
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    const body = bodyOf(await responseTo(sent));
    const closed = service.app.close();
    await run.text('b');
    await run.finish();
    expect(await body).toContain('[DONE]');
    await closed;
    expect(service.database.entries).toMatchObject([{ finishReason: 'stop', completionTokens: 2 }]);
  });

  it('fails what has not ended in time: with 503 before the first byte, with an event after it', async () => {
    service = await startTestService({ timing: { drainMs: 10 } });
    const port = await listen(service.app);
    const silent = sendChat(port);
    const silentRun = await service.chat.next();
    const talking = sendChat(port, { stream: true });
    const talkingRun = await service.chat.next();
    await talkingRun.start();
    await talkingRun.text('a');
    const body = bodyOf(await responseTo(talking));
    const closed = service.app.close();
    const response = await responseTo(silent);
    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
    expect(await bodyOf(response)).toContain('50505');
    expect(await body).toMatch(/50505.*\n\n$/);
    for (const run of [silentRun, talkingRun]) {
      await run.cancelled;
      await run.cancel({ completionTokens: 1 });
    }
    await closed;
    expect(service.database.entries).toHaveLength(2);
  });

  it('refuses a request that still comes over an open connection', async () => {
    service = await startTestService({ timing: { drainMs: 60_000 } });
    const port = await listen(service.app);
    const socket = await openSocket(port);
    socket.write(rawChat());
    const run = await service.chat.next();
    const closed = service.app.close();
    const answers = readToEnd(socket);
    const arrived = once(service.app.server, 'request');
    socket.write(rawChat());
    await arrived;
    await run.start();
    await run.finish();
    const text = (await answers).toString();
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 503']);
    await closed;
  });

  it('closes connections on which nothing happens', async () => {
    service = await startTestService({ timing: { drainMs: 60_000 } });
    const socket = await openSocket(await listen(service.app));
    const ended = readToEnd(socket);
    await service.app.close();
    expect(await ended).toHaveLength(0);
  });
});
