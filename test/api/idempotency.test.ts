import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorBody } from '../support/error-body.js';
import { chatRequest, rerankRequest, startTestService, type TestService } from './support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

const key = { 'idempotency-key': 'order-1' };
const named = (body: Record<string, unknown> = {}, headers: Record<string, string> = key) =>
  service.app.inject(chatRequest(body, headers));

async function answerOne(text = 'Hi'): Promise<void> {
  const run = await service.chat.next();
  await run.start();
  await run.text(text);
  await run.finish();
}

describe('a request that comes again under its key', () => {
  it('gets the first answer, and costs nothing', async () => {
    const first = named();
    await answerOne();
    const answer = await first;
    expect(answer.headers['idempotent-replayed']).toBeUndefined();
    const again = await named();
    expect(again.statusCode).toBe(200);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(again.body).toBe(answer.body);
    await service.app.close();
    expect(service.database.entries).toHaveLength(1);
  });

  it('waits while the first one runs', async () => {
    const both = [named(), named()];
    await answerOne();
    const [first, second] = await Promise.all(both);
    expect(second!.body).toBe(first!.body);
    expect(
      [first, second].filter((answer) => answer!.headers['idempotent-replayed'] === 'true'),
    ).toHaveLength(1);
  });

  it('gets the ranking of the first one', async () => {
    const first = service.app.inject({ ...rerankRequest(), headers: { ...rerankRequest().headers, ...key } });
    const run = await service.rerank.next();
    await run.start();
    await run.rank([0.1, 0.3, 0.2]);
    const answer = await first;
    const again = await service.app.inject({
      ...rerankRequest(),
      headers: { ...rerankRequest().headers, ...key },
    });
    expect(again.body).toBe(answer.body);
  });

  it('is refused when it asks for something else', async () => {
    const first = named();
    await answerOne();
    await first;
    const other = await named({ max_tokens: 3 });
    expect(other.statusCode).toBe(409);
    expect(other.json()).toEqual(errorBody(20409, 'This Idempotency-Key was sent with another request.'));
  });

  it('gets an error again that would come again', async () => {
    const first = named();
    const run = await service.chat.next();
    await run.start();
    await run.fail('invalidParameter', 'messages: too long');
    const answer = await first;
    const again = await named();
    expect(again.statusCode).toBe(400);
    expect(again.body).toBe(answer.body);
  });

  it('is a first one when the error may pass', async () => {
    const first = named();
    const run = await service.chat.next();
    await run.start();
    await run.fail('overloaded', 'busy');
    expect((await first).statusCode).toBe(503);
    const again = named();
    await answerOne('Better');
    expect((await again).json().choices[0].message.content).toBe('Better');
  });
});

describe('an account that has very many answers kept', () => {
  it.each([
    ['keys', { keys: 100_001, bytes: 0 }],
    ['bytes', { keys: 2, bytes: 2 ** 30 + 1 }],
  ])('gets those, and for no more of them by their %s a place', async (_, held) => {
    const first = named();
    await answerOne();
    const { body } = await first;
    await service.close();
    const { database } = service;
    service = await startTestService({ database });
    database.idempotency.held = async () => held;

    expect((await named()).body).toBe(body);
    const refused = await named({}, { 'idempotency-key': 'order-2' });
    expect([refused.statusCode, refused.json().code]).toEqual([429, 50608]);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(60);

    await service.close();
    service = await startTestService({ database });
    database.idempotency.held = async () => ({ keys: 1, bytes: 0 });
    const later = named({}, { 'idempotency-key': 'order-2' });
    await answerOne();
    expect((await later).statusCode).toBe(200);
  });
});

it('a stream takes no notice of a key', async () => {
  for (let i = 0; i < 2; i++) {
    const stream = named({ stream: true });
    await answerOne();
    expect((await stream).body).toContain('[DONE]');
  }
});

it.each(['', 'a b', 'ä', 'x'.repeat(256)])('%j is no key', async (text) => {
  const answer = await named({}, { 'idempotency-key': text });
  expect(answer.statusCode).toBe(400);
  expect(answer.json().message).toMatch(/^Idempotency-Key: /);
});
