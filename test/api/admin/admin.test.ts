import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditEntrySchema } from '../../../src/contract/admin.js';
import { childrenOf, parseXml } from '../../support/xml.js';
import { Description } from '../support/description.js';
import { AdminService, adminToken } from './admin-service.js';

let service: AdminService;
beforeAll(async () => {
  service = await AdminService.start();
});
afterAll(() => service.close());

const lastAudit = async () =>
  auditEntrySchema.parse((await service.ask('GET', '/audit?limit=1')).body.data[0]);

describe('the token of the administration', () => {
  const endpoints = async () => {
    const { paths } = (await service.app.inject({ url: '/openapi.json' })).json();
    return Object.entries(paths as Record<string, object>)
      .filter(([path]) => path.startsWith('/admin/'))
      .flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => ({
          method: method.toUpperCase() as 'GET',
          url: path.replace('{id}', 'x'),
        })),
      );
  };

  it.each([
    ['no token', undefined],
    ['another token', 'Bearer a-token-for-administratioX'],
    ['a shorter one', `Bearer ${adminToken.slice(0, -1)}`],
    ['a longer one', `Bearer ${adminToken}x`],
    ['another scheme', `Basic ${adminToken}`],
    ['nothing but the scheme', 'Bearer'],
  ])('is asked for everywhere: %s is 401', async (_, authorization) => {
    const all = await endpoints();
    expect(all.length).toBeGreaterThan(15);
    const requests = [...all, { method: 'GET', url: '/admin/v1/nothing-there' } as const];
    for (const [index, request] of requests.entries()) {
      const response = await service.app.inject({
        ...request,
        // An address that sends many is made to wait.
        remoteAddress: `192.0.2.${index}`,
        headers: authorization === undefined ? {} : { authorization },
      });
      expect([response.statusCode, response.json().code], request.url).toEqual([401, 20001]);
    }
  });

  it('is no API key, and an API key is no such token', async () => {
    const { secret } = await service.user('not an operator');
    expect((await service.get('/v1/models', adminToken)).statusCode).toBe(401);
    expect((await service.get('/admin/v1/accounts', secret)).statusCode).toBe(401);
  });

  it('when unset leaves nothing there, and nothing of it in the description', async () => {
    const closed = await AdminService.start('');
    try {
      for (const path of ['/accounts', '/keys', '/audit', '']) {
        expect(await closed.ask('GET', path)).toMatchObject({ status: 404, body: { code: 20404 } });
      }
      expect((await closed.app.inject({ url: '/openapi.json' })).body).not.toContain('/admin/');
    } finally {
      await closed.close();
    }
  });

  it('opens the description of every endpoint, under a tag of its own, with examples of every body', async () => {
    const document = (await service.app.inject({ url: '/openapi.json' })).json();
    const description = new Description(document);
    description.expectExamples();
    expect(await description.problems()).toEqual([]);
    expect(document.tags.map(({ name }: { name: string }) => name)).toContain('Administration');
    expect(document.paths['/admin/v1/models/{id}'].patch.security).toEqual([{ admin: [] }]);
    const names = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    const references = JSON.stringify(document).match(/#\/components\/schemas\/\w+/g)!;
    expect(names).toEqual(expect.arrayContaining([...new Set(references)]));
    expect((await service.app.inject({ url: '/docs' })).body).toContain('/admin/v1/webhooks');
  });
});

describe('the administration', () => {
  it('creates, shows and changes an account, by its id and by its name', async () => {
    const created = await service.ask('POST', '/accounts', { name: 'team' });
    expect(created).toMatchObject({ status: 200, body: { name: 'team', disabled: false, verified: false } });
    expect((await service.ask('GET', `/accounts/${created.body.id}`)).body).toEqual(created.body);
    expect((await service.ask('PATCH', '/accounts/team', { verified: true })).body.verified).toBe(true);
    expect((await service.ask('GET', '/accounts')).body.data).toContainEqual({
      ...created.body,
      verified: true,
    });
  });

  it('disables an account, whose requests are then refused with 30002', async () => {
    const { secret } = await service.user('disabled');
    expect((await service.get('/v1/models', secret)).statusCode).toBe(200);
    await service.ask('PATCH', '/accounts/disabled', { disabled: true });
    expect((await service.get('/v1/models', secret)).json().code).toBe(30002);
  });

  it('shows a key once, and ends it', async () => {
    const { secret, keyId } = await service.user('holder');
    const listed = await service.ask('GET', '/keys?account=holder');
    expect(listed.body.data).toMatchObject([{ id: keyId, account: 'holder', revoked: null }]);
    expect(JSON.stringify(listed.body)).not.toContain(secret);
    expect((await service.ask('DELETE', `/keys/${keyId}`)).body.revoked).not.toBeNull();
    expect((await service.get('/v1/models', secret)).statusCode).toBe(401);
  });

  it('takes a DELETE from a client that names a type of body and sends none', async () => {
    const { keyId } = await service.user('typed');
    const response = await service.app.inject({
      method: 'DELETE',
      url: `/admin/v1/keys/${keyId}`,
      headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    });
    expect([response.statusCode, response.json().id]).toEqual([200, keyId]);
  });

  it('sets limits of an account, and takes them back', async () => {
    await service.user('limited');
    const set = await service.ask('PATCH', '/limits', {
      account: 'limited',
      model: 'tiny-chat',
      rpm: 5,
      tpd: -1,
    });
    expect(set).toMatchObject({
      status: 200,
      body: { account: 'limited', model: 'tiny-chat', rpm: 5, tpd: -1 },
    });
    expect((await service.ask('GET', '/limits?account=limited')).body.data).toEqual([set.body]);
    await service.ask('PATCH', '/limits', { account: 'limited', model: 'tiny-chat', rpm: null, tpd: null });
    expect((await service.ask('GET', '/limits?account=limited')).body.data).toEqual([]);
  });

  it('reads what an account has used, and nobody else', async () => {
    const [mine, theirs] = [await service.user('spender'), await service.user('saver')];
    const hour = new Date('2026-06-01T10:00:00Z');
    const spent = { requests: 2, failedRequests: 0, promptTokens: 5, completionTokens: 7, cachedTokens: 0 };
    await service.database.client.usageHour.create({
      data: { accountId: mine.id, keyId: mine.keyId, model: 'tiny-chat', hour, ...spent },
    });
    const range = 'start=2026-06-01&end=2026-06-02&group_by=model';
    expect((await service.ask('GET', `/usage?account=spender&${range}`)).body.data).toMatchObject([
      { model: 'tiny-chat', requests: 2, total_tokens: 12 },
    ]);
    expect((await service.ask('GET', `/usage?account=${theirs.id}&${range}`)).body.data).toEqual([]);
  });

  it('puts a model offline, which is then no model to anyone, and online again', async () => {
    const { secret } = await service.user('user of models');
    await service.ask('PATCH', '/models/owner/seeing-chat', { state: 'offline' });
    await expect
      .poll(async () => (await service.get('/v1/models/owner/seeing-chat', secret)).json().code)
      .toBe(20012);
    await service.ask('PATCH', '/models/owner%2Fseeing-chat', { state: 'online' });
    await expect
      .poll(async () => (await service.get('/v1/models/owner/seeing-chat', secret)).statusCode)
      .toBe(200);
    expect((await service.ask('GET', '/models')).body.data[1]).toMatchObject({
      model: 'owner/seeing-chat',
      state: 'online',
      workers: 0,
    });
  });

  it('registers a webhook, shows its secret once, its deliveries, and removes it', async () => {
    const { body: webhook } = await service.ask('POST', '/webhooks', { url: 'https://example.org/hook' });
    expect(webhook.secret).toMatch(/^whsec_/);
    await service.ask('POST', '/notices', { title: 'For webhooks', text: 'Text' });
    const listed = await service.ask('GET', '/webhooks');
    expect(listed.body.data).toEqual([{ id: webhook.id, url: webhook.url, created: webhook.created }]);
    const deliveries = await service.ask('GET', `/webhooks/${webhook.id}/deliveries`);
    expect(deliveries.body.data).toMatchObject([{ title: 'For webhooks', state: 'pending', attempts: [] }]);
    expect((await service.ask('DELETE', `/webhooks/${webhook.id}`)).status).toBe(200);
    expect((await service.ask('GET', '/webhooks')).body.data).toEqual([]);
  });

  it.each([
    ['POST', '/accounts', {}, 'name: is required'],
    ['POST', '/accounts', { name: 'two\nlines' }, 'name: must be text on one line'],
    ['POST', '/accounts', { name: 'a\u0000b' }, 'name: must be text on one line'],
    ['POST', '/accounts', { name: 'left\u202Eright' }, 'name: must be text on one line'],
    ['POST', '/accounts', { name: 'x'.repeat(101) }, 'name: must have at most 100 characters'],
    ['PATCH', '/accounts/x', { disabled: 'yes' }, 'disabled: must be true or false, not a string'],
    ['POST', '/keys', { account: 'nobody', expires: 'soon' }, 'expires: must be a date and time'],
    ['PATCH', '/limits', { account: 'nobody', rpm: -2 }, 'rpm: must be at least -1'],
    ['PATCH', '/models/tiny-chat', { state: 'away' }, 'state: must be one of "online"'],
    ['PATCH', '/models/tiny-chat', { state: 'deprecated' }, 'sunset: is required'],
    ['PATCH', '/models/another', { state: 'offline' }, 'Model does not exist.'],
    ['POST', '/webhooks', { url: 'file:///etc/passwd' }, 'url: must be an http or https URL'],
    ['POST', '/webhooks', { url: 'http://user:word@example.org/' }, 'url: must not carry a user name'],
    ['GET', '/audit?limit=0', undefined, 'limit: must be at least 1'],
    ['GET', "/notices?before=1'--", undefined, 'before: must be an id'],
  ] as const)('%s %s with %j is 400: %s', async (method, path, body, message) => {
    const response = await service.ask(method, path, body);
    expect(response.status).toBe(400);
    expect(response.body.message).toContain(message);
  });

  it.each([
    ['GET', '/accounts/nobody'],
    ['GET', '/accounts/%00'],
    ['DELETE', '/keys/nothing'],
    ['DELETE', '/webhooks/nothing'],
    ['GET', '/webhooks/0190a000-0000-7000-8000-00000000ffff/deliveries'],
    ['GET', '/keys?account=nobody'],
  ] as const)('%s %s of what is not there is 404', async (method, path) => {
    expect((await service.ask(method, path)).status).toBe(404);
  });
});

describe('a list', () => {
  const names = ['page-a', 'page-b', 'page-c', 'page-d', 'page-e'];
  /** Everything that pages of two show, each asked for from where the one before it ended. */
  const pages = async (path: string, cursor: 'after' | 'before') => {
    const seen: Record<string, string>[] = [];
    for (let from = ''; ; ) {
      const { status, body } = await service.ask('GET', `${path}limit=2${from}`);
      expect(status).toBe(200);
      expect(body.data.length).toBeLessThanOrEqual(2);
      seen.push(...body.data);
      if (!body.has_more) return seen;
      from = `&${cursor}=${encodeURIComponent(body.data.at(-1).id)}`;
    }
  };
  beforeAll(async () => {
    for (const name of names) {
      await service.user(name);
      for (const limits of [{ rpd: 5 }, { rpm: 1, model: 'owner/seeing-chat' }]) {
        await service.ask('PATCH', '/limits', { account: name, ...limits });
      }
    }
    const { body } = await service.ask('POST', '/webhooks', { url: 'https://example.org/pages' });
    webhook = body.id;
    for (const title of names) await service.ask('POST', '/notices', { title, text: 'x', account: 'page-a' });
  });
  let webhook: string;

  it.each([
    ['accounts', 'name'],
    ['keys', 'account'],
  ])('of %s comes in pages, the oldest first', async (path, field) => {
    const seen = (await pages(`/${path}?`, 'after')).map((row) => row[field]!);
    expect(seen.filter((name) => names.includes(name))).toEqual(names);
  });

  it('of the keys of one account has no others on any page', async () => {
    for (let i = 0; i < 4; i++) await service.ask('POST', '/keys', { account: 'page-b' });
    const seen = await pages('/keys?account=page-b&', 'after');
    expect(seen.map(({ account }) => account)).toEqual(Array(5).fill('page-b'));
    expect(new Set(seen.map(({ id }) => id)).size).toBe(5);
  });

  it('of limits comes in pages, in which an account may go on', async () => {
    const seen = (await pages('/limits?', 'after')).filter(({ account }) => names.includes(account!));
    expect(seen.map(({ account, model }) => [account, model])).toEqual(
      names.flatMap((name) => [
        [name, null],
        [name, 'owner/seeing-chat'],
      ]),
    );
  });

  it('of notices, of deliveries and of the audit log comes in pages, the newest first', async () => {
    const newest = names.toReversed();
    const titles = (rows: Record<string, string>[]) => rows.map(({ title }) => title!);
    expect(titles(await pages(`/webhooks/${webhook}/deliveries?`, 'before'))).toEqual(newest);
    expect(titles(await pages('/notices?', 'before')).slice(0, 5)).toEqual(newest);
    const ids = (await pages('/audit?', 'before')).map(({ id }) => id!);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted().toReversed()).toEqual(ids);
  });

  it.each(['models', 'webhooks', 'usage?account=page-a'])('of %s is whole', async (path) => {
    expect((await service.ask('GET', `/${path}`)).body).toMatchObject({ object: 'list', has_more: false });
  });

  it.each(['accounts', 'keys', 'limits'])('of %s begins behind an id and nothing else', async (path) => {
    for (const after of ["'--", 'page-a', '']) {
      const { status, body } = await service.ask('GET', `/${path}?after=${encodeURIComponent(after)}`);
      expect([status, body.message]).toEqual([400, 'after: must be an id']);
    }
    expect((await service.ask('GET', `/${path}?account=`)).status).toBe(path === 'accounts' ? 200 : 404);
  });
});

describe('the audit log', () => {
  it.each([
    ['POST', '/accounts', { name: 'audited' }, 'account.create'],
    ['PATCH', '/accounts/audited', { disabled: true }, 'account.update'],
    ['POST', '/keys', { account: 'audited' }, 'key.create'],
    ['PATCH', '/limits', { account: 'audited', rpd: 7 }, 'limits.update'],
    ['PATCH', '/models/tiny-chat', { access: 'verified' }, 'model.update'],
    ['POST', '/notices', { title: 'Audited', text: 'Text' }, 'notice.create'],
    ['POST', '/webhooks', { url: 'https://example.org/' }, 'webhook.create'],
  ] as const)('has %s %s, with who did it', async (method, path, body, action) => {
    expect((await service.ask(method, path, body)).status).toBe(200);
    const entry = await lastAudit();
    expect(entry).toMatchObject({ actor: 'admin:127.0.0.1', action });
    expect(entry.after).not.toBeNull();
    expect(
      (await service.ask('GET', `/audit?target=${encodeURIComponent(entry.target)}`)).body.data[0],
    ).toEqual(entry);
  });

  it('has the end of a key and of a webhook', async () => {
    const { keyId } = await service.user('ended');
    await service.ask('DELETE', `/keys/${keyId}`);
    expect(await lastAudit()).toMatchObject({
      action: 'key.revoke',
      target: keyId,
      before: { revoked: null },
    });
    const { body } = await service.ask('POST', '/webhooks', { url: 'https://example.org/' });
    await service.ask('DELETE', `/webhooks/${body.id}`);
    expect(await lastAudit()).toMatchObject({ action: 'webhook.remove', target: body.id, after: null });
  });

  it('has nothing of a change that was refused', async () => {
    const before = await lastAudit();
    await service.ask('POST', '/accounts', { name: 'audited' });
    await service.ask('DELETE', '/keys/nothing');
    expect(await lastAudit()).toEqual(before);
  });

  it('and the log of the service have no secret in them', async () => {
    const { secret } = await service.user('secretive');
    const { body } = await service.ask('POST', '/webhooks', { url: 'https://example.org/' });
    const audit = JSON.stringify((await service.ask('GET', '/audit?limit=100')).body);
    for (const text of [audit, service.log.join('')]) {
      for (const hidden of [secret, body.secret, adminToken]) expect(text).not.toContain(hidden);
    }
  });
});

describe('notices', () => {
  it('for one account are read with its keys and with no others, in both forms', async () => {
    const [mine, theirs] = [await service.user('mine'), await service.user('theirs')];
    await service.ask('POST', '/notices', { title: 'Only for <mine>', text: 'a & b', account: 'mine' });
    const seen = async (secret: string) => {
      const list = (await service.get('/v1/notices?limit=100', secret)).json();
      const feed = await service.get('/v1/notices.atom', secret);
      expect(feed.headers['content-type']).toBe('application/atom+xml; charset=utf-8');
      const entries = childrenOf(parseXml(feed.body), 'entry');
      return [
        list.data.map(({ title }: { title: string }) => title),
        entries.map((entry) => childrenOf(entry, 'title')[0]!.text),
      ];
    };
    for (const titles of await seen(mine.secret)) expect(titles).toContain('Only for <mine>');
    for (const titles of await seen(theirs.secret)) expect(titles).not.toContain('Only for <mine>');
  });

  it('need a key', async () => {
    for (const url of ['/v1/notices', '/v1/notices.atom']) {
      expect((await service.app.inject({ url })).statusCode).toBe(401);
    }
  });

  it('do not show another account’s by asking for what is older than one of them', async () => {
    const [mine, theirs] = [await service.user('reader one'), await service.user('reader two')];
    const hidden = await service.ask('POST', '/notices', { title: 'Hidden', text: 'x', account: mine.id });
    await service.ask('POST', '/notices', { title: 'Later', text: 'x' });
    const page = await service.get(`/v1/notices?limit=100&before=${hidden.body.id}`, theirs.secret);
    expect(page.body).not.toContain('Hidden');
  });
});
