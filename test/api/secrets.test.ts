import { afterEach, beforeEach, expect, it } from 'vitest';
import { hashKey } from '../../src/platform/keys.js';
import { chatRequest, secret, startTestService, type TestService } from './support/test-app.js';

const wrong = 'sk-wrong0123456789abcdefghijklmnopqrstuvwxyzAB';
const hidden = [secret, secret.slice(0, 16), hashKey(secret), wrong, hashKey(wrong)];

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

it('a key is in no log line, error, metric, job or row of the ledger', async () => {
  const seen: string[] = [];
  const refused = await service.app.inject(chatRequest({}, { authorization: `Bearer ${wrong}` }));
  seen.push(refused.body, JSON.stringify(refused.headers));
  const response = service.app.inject(chatRequest({ user: 'someone' }, { 'x-request-id': 'mine' }));
  const run = await service.chat.next();
  seen.push(JSON.stringify(run.job));
  await run.start();
  await run.fail('internal', 'broken');
  seen.push((await response).body, JSON.stringify((await response).headers));
  seen.push((await service.app.inject({ url: '/metrics' })).body);
  seen.push(JSON.stringify(await service.database.entriesWritten()), JSON.stringify(service.log));
  expect(service.log).not.toEqual([]);
  for (const text of hidden) expect(seen.join('\n')).not.toContain(text);
});

it('what a client writes stays inside its field of a log line', async () => {
  const user = 'x","level":60,"msg":"forged\n{"level":60}\u001b[31m';
  const response = service.app.inject(chatRequest({ user, model: `nobody"\n{"forged":true}` }));
  expect((await response).statusCode).toBe(400);
  const answered = service.app.inject(chatRequest({ user }, { 'idempotency-key': 'k"\',{}' }));
  const run = await service.chat.next();
  await run.start();
  await run.finish();
  expect((await answered).statusCode).toBe(200);
  expect((await service.database.entriesWritten())[0]!.endUser).toBe(user);
  for (const line of service.log) {
    expect(line['forged']).toBeUndefined();
    expect(line['level']).not.toBe(60);
  }
});
