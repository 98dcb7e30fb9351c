import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminService } from './admin/admin-service.js';

interface User {
  readonly id: string;
  readonly keyId: string;
  readonly secret: string;
}

let service: AdminService;
let mine: User;
let theirs: User;
let hiddenNotice: string;
beforeAll(async () => {
  service = await AdminService.start();
  [mine, theirs] = [await service.user('mine'), await service.user('theirs')];
  for (const [user, model] of [
    [mine, 'my-model'],
    [theirs, 'their-model'],
  ] as const) {
    const sums = { requests: 2, failedRequests: 0, promptTokens: 5, completionTokens: 7, cachedTokens: 0 };
    const hour = new Date('2026-06-01T10:00:00Z');
    await service.database.client.usageHour.create({
      data: { accountId: user.id, keyId: user.keyId, model, hour, ...sums },
    });
  }
  await service.ask('POST', '/notices', { title: 'For me', text: 'x', account: mine.id });
  const hidden = await service.ask('POST', '/notices', {
    title: 'Not for me',
    text: 'x',
    account: theirs.id,
  });
  hiddenNotice = hidden.body.id;
  await service.ask('POST', '/notices', { title: 'For everyone', text: 'x' });
});
afterAll(() => service.close());

/** Every way in which one might ask for what belongs to another. */
const names = [
  ...['account', 'account_id', 'accountId', 'accounts', 'account[]', 'account[id]', 'owner', 'tenant'],
  ...['key', 'key_id', 'keyId', 'api_key', 'api_key_id', 'user', 'user_id', 'organization', 'project', 'id'],
  ...['__proto__[accountId]', 'constructor[prototype][accountId]', 'where', 'filter', 'audience', 'all'],
];
const headerNames = [
  ...['x-account', 'x-account-id', 'account', 'openai-organization', 'openai-project', 'x-api-key'],
  ...['x-forwarded-user', 'x-user', 'x-original-authorization', 'proxy-authorization', 'cookie'],
];

function* attempts(): Generator<{ query: string; headers: Record<string, string> }> {
  const values = [theirs.id, theirs.keyId, theirs.secret, 'theirs', '*', ''];
  for (const value of values) {
    for (const name of names) {
      yield { query: `${encodeURIComponent(name)}=${encodeURIComponent(value)}`, headers: {} };
    }
    for (const name of headerNames) yield { query: '', headers: { [name]: value } };
  }
}

async function eachAnswer(path: string, see: (body: string, how: string) => void): Promise<void> {
  for (const { query, headers } of attempts()) {
    const response = await service.app.inject({
      url: `${path}${query}`,
      headers: { ...headers, authorization: `Bearer ${mine.secret}` },
    });
    see(response.body, `${query} ${JSON.stringify(headers)}`);
  }
}

describe('a key of one account reads nothing of another, whatever it asks for:', () => {
  it('usage', async () => {
    const path = '/v1/usage?start=2026-06-01&end=2026-06-02&group_by=model,key,day&';
    const own = await service.get(path, mine.secret);
    expect(own.json().data).toMatchObject([{ model: 'my-model', key_id: mine.keyId, requests: 2 }]);
    await eachAnswer(path, (body, how) => expect(body, how).toBe(own.body));
  });

  it.each(['/v1/notices?limit=100&', '/v1/notices.atom?'])('notices at %s', async (path) => {
    const own = await service.get(path, mine.secret);
    expect(own.body).toContain('For me');
    expect(own.body).toContain('For everyone');
    expect(own.body).not.toContain('Not for me');
    await eachAnswer(path, (body, how) => expect(body, how).toBe(own.body));
  });

  it('notices older than one that is not its own', async () => {
    for (const before of [hiddenNotice, hiddenNotice.toUpperCase()]) {
      const { body } = await service.get(`/v1/notices?limit=100&before=${before}`, mine.secret);
      expect(body).not.toContain('Not for me');
    }
    expect((await service.get(`/v1/notices/${hiddenNotice}`, mine.secret)).statusCode).toBe(404);
  });

  it('anything of the administration', async () => {
    for (const path of ['/usage?account=theirs', '/notices', '/accounts', '/keys', '/limits', '/audit']) {
      expect((await service.get(`/admin/v1${path}`, mine.secret)).statusCode, path).toBe(401);
    }
  });

  it('with two keys at once, which are none', async () => {
    const { body } = await service.app.inject({
      url: '/v1/notices?limit=100',
      headers: { authorization: `Bearer ${mine.secret}, Bearer ${theirs.secret}` },
    });
    expect(JSON.parse(body).code).toBe(20001);
  });
});
