import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bodyUntil, listen, openSocket, rawChat, responseTo, sendChat } from './support/sockets.js';
import { startTestService, type TestService } from './support/test-app.js';

let service: TestService;
let port: number;
beforeEach(async () => {
  service = await startTestService();
  port = await listen(service.app);
});
afterEach(() => service.close());

const nobody = 'owner/seeing-chat';

async function queued(count: number): Promise<void> {
  const { waiting } = service.backplane.queue(nobody);
  while (waiting.length !== count) await new Promise((resolve) => setImmediate(resolve));
}

describe.each([{ stream: true }, { stream: false }])('a client that goes away (%o)', (how) => {
  it('while its request waits takes it out of the queue', async () => {
    const sent = sendChat(port, { ...how, model: nobody });
    await queued(1);
    sent.destroy();
    await queued(0);
    const [entry] = await service.database.entriesWritten();
    expect(entry).toMatchObject({
      finishReason: 'cancelled',
      status: 499,
      promptTokens: 0,
      completionTokens: 0,
    });
  });

  it('while its request runs stops it, and what was generated is counted', async () => {
    const sent = sendChat(port, how);
    const run = await service.chat.next();
    await run.start();
    await run.text('a');
    if (how.stream) await bodyUntil(await responseTo(sent), '"a"');
    sent.destroy();
    await run.cancelled;
    await run.cancel({ promptTokens: 9, completionTokens: 4 });
    const [entry] = await service.database.entriesWritten();
    expect(entry).toMatchObject({
      id: run.job.id,
      finishReason: 'cancelled',
      status: 499,
      promptTokens: 9,
      completionTokens: 4,
      queueMs: 1.5,
    });
  });
});

it('a client that goes away with several requests on one connection stops them all', async () => {
  const socket = await openSocket(port);
  socket.write(rawChat() + rawChat() + rawChat({ stream: true }));
  const runs = [await service.chat.next(), await service.chat.next(), await service.chat.next()];
  for (const run of runs) await run.start();
  socket.destroy();
  for (const run of runs) {
    await run.cancelled;
    await run.cancel({});
  }
  const entries = await service.database.entriesWritten(3);
  expect(entries.map(({ finishReason }) => finishReason)).toEqual(['cancelled', 'cancelled', 'cancelled']);
});

it('a client that goes away after its answer cancels nothing', async () => {
  const sent = sendChat(port);
  const run = await service.chat.next();
  await run.start();
  await run.finish();
  const response = await responseTo(sent);
  await bodyUntil(response, 'usage');
  sent.destroy();
  const [entry] = await service.database.entriesWritten();
  expect(entry).toMatchObject({ finishReason: 'stop', status: 200 });
});
