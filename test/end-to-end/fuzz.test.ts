import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OpenApiDocument } from '../../src/api/openapi/document.js';
import { chatChunkSchema, chatRequestSchema, chatResponseSchema } from '../../src/contract/chat.js';
import { errorBodySchema } from '../../src/contract/errors.js';
import { rerankRequestSchema, rerankResponseSchema } from '../../src/contract/rerank.js';
import { type FakeRun, FakeWorker } from '../api/support/fake-worker.js';
import { dataOf } from '../api/support/raw-responses.js';
import { authorization, startTestService, type TestService } from '../api/support/test-app.js';
import { fc } from '../support/property.js';
import { requestBodies } from './support/request-bodies.js';

const bodiesPerOperation = 5_000;

let service: TestService;
let seeing: FakeWorker;
let description: OpenApiDocument;
beforeAll(async () => {
  service = await startTestService({
    logger: pino({ level: 'silent' }),
    // Whatever is not answered at once is not answered at all.
    config: { requestTimeoutMs: 2_000, maxQueueDepth: 100_000 },
  });
  seeing = await FakeWorker.start(service.backplane, 'owner/seeing-chat');
  for (const worker of [service.chat, seeing]) void worker.answerAll(answerChat);
  void service.rerank.answerAll(async (run) => {
    await run.start();
    if (run.job.kind === 'rerank') await run.rank(run.job.documents.map((_, i) => 1 / (i + 1)));
  });
  description = (await service.app.inject({ url: '/openapi.json' })).json();
});
afterAll(async () => {
  await service.close();
  await seeing.stop();
});

async function answerChat(run: FakeRun): Promise<void> {
  await run.start();
  const choices = run.job.kind === 'chat' ? run.job.n : 0;
  for (let choice = 0; choice < choices; choice++) {
    await run.text('文', choice);
    if (choice > 0) await run.send({ type: 'finish', choice, reason: 'stop' });
  }
  await run.finish();
}

describe.each([
  ['/v1/chat/completions', requestBodies.chat, Object.keys(chatRequestSchema.shape)],
  ['/v1/rerank', requestBodies.rerank, Object.keys(rerankRequestSchema.shape)],
] as const)('%s', (path, bodies, parameters) => {
  it(`answers ${bodiesPerOperation} generated bodies as it is described to, and never with 500`, {
    timeout: 120_000,
  }, async () => {
    const documented = Object.keys(description.paths[path]!.post!.responses).map(Number);
    const seen = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const response = await service.app.inject({
          method: 'POST',
          url: path,
          headers: { authorization, 'content-type': 'application/json' },
          payload: Buffer.from(body),
        });
        const { statusCode } = response;
        seen.set(statusCode, (seen.get(statusCode) ?? 0) + 1);
        expect(documented).toContain(statusCode);
        // Nothing is away, nobody is slow and nothing is too large: what is wrong is the request, or nothing is.
        expect([200, 400]).toContain(statusCode);
        if (statusCode === 400) expectRefusal(response.json(), parameters);
        else expectReply(path, String(response.headers['content-type']), response.body);
      }),
      { numRuns: bodiesPerOperation, endOnFailure: true },
    );
    // Bodies that are all refused, or all accepted, would prove little.
    for (const status of [200, 400]) expect(seen.get(status)).toBeGreaterThan(bodiesPerOperation / 10);
  });
});

/** A parameter, the way into it (`.name`, `[0]`, `["any \"name\""]`), and what is wrong with it. */
const namedPath = /^([a-z_]+)(?:\.\w+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*: ./su;

function expectRefusal(body: unknown, parameters: readonly string[]): void {
  const { code, message } = errorBodySchema.strict().parse(body);
  if (code === 20012) return;
  expect(code).toBe(20015);
  const [, named] = namedPath.exec(message) ?? [];
  expect([...parameters, 'body'], message).toContain(named);
}

function expectReply(path: string, contentType: string, body: string): void {
  if (path === '/v1/rerank') {
    rerankResponseSchema.strict().parse(JSON.parse(body));
  } else if (contentType.startsWith('application/json')) {
    chatResponseSchema.strict().parse(JSON.parse(body));
  } else {
    const data = dataOf(body);
    expect(data.pop()).toBe('[DONE]');
    for (const chunk of data) chatChunkSchema.strict().parse(JSON.parse(chunk));
  }
}
