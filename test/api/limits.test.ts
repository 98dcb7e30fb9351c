import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LimitedRequest, LimitVerdict } from '../../src/api/limit-store.js';
import { errorBody } from '../support/error-body.js';
import { chatRequest, keyId, rerankRequest, startTestService, type TestService } from './support/test-app.js';

let service: TestService;
let asked: LimitedRequest[];
let verdict: LimitVerdict;

beforeEach(async () => {
  service = await startTestService();
  asked = [];
  verdict = {
    refused: undefined,
    requests: { limit: 10, remaining: 7 },
    tokens: { limit: 1_000, remaining: 400 },
    at: new Date('2026-03-04T10:20:42.500Z'),
  };
  service.database.limits.reserve = async (_lane, requests) => {
    asked.push(...requests);
    return requests.map(() => verdict);
  };
});
afterEach(() => service.close());

const headers = {
  'x-ratelimit-limit-requests': '10',
  'x-ratelimit-remaining-requests': '7',
  'x-ratelimit-reset-requests': '18',
  'x-ratelimit-limit-tokens': '1000',
  'x-ratelimit-remaining-tokens': '400',
  'x-ratelimit-reset-tokens': '18',
};
const asText = (given: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]));
const settled = () => expect.poll(() => service.database.settled);

describe('the headers about the minute', () => {
  it.each([
    ['a whole reply', {}],
    ['a stream', { stream: true }],
  ])('are on %s', async (_name, body) => {
    const response = service.app.inject(chatRequest(body));
    const run = await service.chat.next();
    await run.start();
    await run.text('x');
    await run.finish();
    expect(asText((await response).headers)).toMatchObject(headers);
  });

  it('are on an error that comes after the check', async () => {
    const response = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.fail('invalidParameter', 'messages: too long');
    expect((await response).statusCode).toBe(400);
    expect(asText((await response).headers)).toMatchObject(headers);
  });

  it('are left out where there is no such limit', async () => {
    verdict = { ...verdict, requests: undefined, tokens: undefined, refused: 'rpd' };
    const { headers: sent } = await service.app.inject(chatRequest());
    expect(Object.keys(sent).filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
  });
});

describe('a request beyond a limit', () => {
  it.each([
    ['rpm', 50601, 18],
    ['tpm', 50602, 18],
    ['ipm', 50604, 18],
    ['ipd', 50605, 49_158],
    ['tpd', 50606, 49_158],
    ['rpd', 50608, 49_158],
  ] as const)('%s is told its name and when to come again', async (refused, code, seconds) => {
    verdict = { ...verdict, refused };
    const response = await service.app.inject(chatRequest());
    expect(response.statusCode).toBe(429);
    const message = `Request was rejected due to rate limiting. Details: ${refused.toUpperCase()} limit reached.`;
    expect(response.json()).toEqual(errorBody(code, message));
    expect(response.headers['retry-after']).toBe(String(seconds));
    expect(asText(response.headers)).toMatchObject(headers);
  });

  it('has its row in the ledger and nothing to settle', async () => {
    verdict = { ...verdict, refused: 'rpm' };
    await service.app.inject(chatRequest({ user: 'someone' }));
    const [entry, ...others] = await service.database.entriesWritten();
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      keyId,
      model: 'tiny-chat',
      finishReason: 'rpmLimit',
      status: 429,
      endUser: 'someone',
      promptTokens: 0,
    });
    expect(service.database.settled).toEqual([]);
  });
});

describe('what a request reserves', () => {
  it('is an estimate of its prompt and the longest completion', async () => {
    void service.app.inject(chatRequest({ max_tokens: 30 }));
    await service.chat.next();
    expect(asked[0]!.tokens).toBeGreaterThan(30);
    expect(asked[0]!.tokens).toBeLessThan(70);
  });

  it('is no more for its completion than the context holds', async () => {
    void service.app.inject(chatRequest({ max_tokens: 1_000_000 }));
    await service.chat.next();
    expect(asked[0]!.tokens).toBeLessThan(600);
  });

  it('counts its images', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
    const messages = [{ role: 'user', content: [image, { type: 'text', text: 'What?' }, image] }];
    verdict = { ...verdict, refused: 'ipm' };
    await service.app.inject(chatRequest({ model: 'owner/seeing-chat', messages }));
    expect(asked[0]!.images).toBe(2);
  });

  it('becomes what it used when it is answered', async () => {
    const response = service.app.inject(rerankRequest());
    const run = await service.rerank.next();
    await run.start();
    await run.rank([0.1, 0.2, 0.3], 31);
    await response;
    await settled().toMatchObject([{ id: run.job.id, tokens: 31 }]);
  });

  it('becomes what it used when it fails', async () => {
    const response = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.fail('internal', 'broken');
    await response;
    await settled().toMatchObject([{ id: run.job.id, tokens: 5 }]);
  });

  it('is given back when the queue does not take it', async () => {
    await service.close();
    service = await startTestService({ config: { maxQueueDepth: 1 } });
    const queue = service.backplane.queue('tiny-chat');
    queue.depth = async () => 1;
    expect((await service.app.inject(chatRequest())).statusCode).toBe(503);
    await settled().toMatchObject([{ tokens: 0 }]);
    expect(await service.database.entriesWritten()).toMatchObject([{ finishReason: 'overloaded' }]);
  });
});
