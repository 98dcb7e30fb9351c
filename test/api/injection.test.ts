import { afterAll, beforeAll, expect, it } from 'vitest';
import { AdminService, adminToken } from './admin/admin-service.js';
import { FakeWorker } from './support/fake-worker.js';

const payloads: readonly (readonly [string, string])[] = [
  ['SQL that ends a string', `'; DROP TABLE accounts; --`],
  ['SQL that is always true', `x' OR '1'='1`],
  ['SQL in double quotes', `"; UPDATE accounts SET verified = true; --`],
  ['SQL behind a backslash', `\\'; DELETE FROM api_keys; --`],
  ['SQL that waits', `'||pg_sleep(60)||'`],
  ['a parameter of a statement', '$1 %s %n {0} {{x}} #{x}'],
  ['a second line of a log', 'x\n{"level":60,"msg":"forged","forged":true}'],
  ['a second line of a log, in JSON', 'x"}\r\n{"level":60,"forged":true}'],
  ['lines of Unicode', 'x\u2028{"forged":true}\u2029\u0085y'],
  ['commands of a terminal', '\u001b[2J\u001b]0;forged\u0007'],
  ['a character of nothing', 'a\u0000b'],
  ['half a character', 'a\ud800b'],
  ['a name of a prototype', '__proto__'],
  ['a path upwards', '../../../../etc/passwd'],
];

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
interface Attack {
  readonly method: Method;
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly payload?: object;
}

const chat = (payload: object): Attack => ({ method: 'POST', url: '/v1/chat/completions', payload });
const said = { model: 'tiny-chat', messages: [{ role: 'user', content: 'x' }] };
const tool = (name: string, description: string) => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties: { [name]: { description } } } },
});
const rerank = { model: 'tiny-rerank', query: 'q', documents: ['d'] };
const admin = (method: Method, path: string, payload?: object): Attack => ({
  method,
  url: `/admin/v1${path}`,
  headers: { authorization: `Bearer ${adminToken}` },
  ...(payload && { payload }),
});
/** As a client that checks nothing would write it. */
const encode = (text: string) => encodeURIComponent(text.replace(/\p{Cs}/gu, '\ufffd'));
/** What some reader of a log takes for the end of a line, or obeys. */
const lineBreaks = /[\p{Cc}\p{Zl}\p{Zp}]/gu;
/** What a client can put into a header at all. */
const headerOf = (text: string) => text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '?');

const fields: Record<string, (text: string) => Attack> = {
  'chat model': (text) => chat({ ...said, model: text }),
  'chat content': (text) => chat({ ...said, messages: [{ role: 'user', content: text }] }),
  'chat content part': (text) =>
    chat({ ...said, messages: [{ role: 'user', content: [{ type: 'text', text }] }] }),
  'chat role': (text) => chat({ ...said, messages: [{ role: text, content: 'x' }] }),
  'chat name': (text) => chat({ ...said, messages: [{ role: 'user', content: 'x', name: text }] }),
  'chat tool_call_id': (text) =>
    chat({ ...said, messages: [{ role: 'tool', content: 'x', tool_call_id: text }] }),
  'chat tool call': (text) =>
    chat({
      ...said,
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: text, type: 'function', function: { name: text, arguments: text } }],
        },
      ],
    }),
  'chat image': (text) =>
    chat({
      model: 'owner/seeing-chat',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: text } }] }],
      stream: text,
    }),
  'chat user': (text) => chat({ ...said, user: text }),
  'chat metadata': (text) => chat({ ...said, metadata: { [text]: text } }),
  'chat stop': (text) => chat({ ...said, stop: [text] }),
  'chat logit_bias': (text) => chat({ ...said, logit_bias: { [text]: 1 } }),
  'chat response_format': (text) =>
    chat({
      ...said,
      response_format: { type: 'json_schema', json_schema: { name: text, schema: { title: text } } },
    }),
  'chat tool': (text) => chat({ ...said, tools: [tool('name', text)] }),
  'chat tool name': (text) => chat({ ...said, tools: [tool(text, 'x')] }),
  'chat tool_choice': (text) =>
    chat({ ...said, tools: [tool('f', 'x')], tool_choice: { type: 'function', function: { name: text } } }),
  'chat unknown field': (text) => chat({ ...said, [text]: text }),
  'chat body': (text) => ({ method: 'POST', url: '/v1/chat/completions', payload: [text] }),
  'rerank model': (text) => ({ method: 'POST', url: '/v1/rerank', payload: { ...rerank, model: text } }),
  'rerank query': (text) => ({ method: 'POST', url: '/v1/rerank', payload: { ...rerank, query: text } }),
  'rerank document': (text) => ({
    method: 'POST',
    url: '/v1/rerank',
    payload: { ...rerank, documents: [text], return_documents: true },
  }),
  'header x-request-id': (text) => ({ ...chat(said), headers: { 'x-request-id': headerOf(text) } }),
  'header idempotency-key': (text) => ({ ...chat(said), headers: { 'idempotency-key': headerOf(text) } }),
  'header user-agent': (text) => ({ ...chat(said), headers: { 'user-agent': headerOf(text) } }),
  'header x-forwarded-for': (text) => ({ ...chat(said), headers: { 'x-forwarded-for': headerOf(text) } }),
  'header accept': (text) => ({ method: 'GET', url: '/v1/usage', headers: { accept: headerOf(text) } }),
  'header authorization': (text) => ({
    method: 'GET',
    url: '/v1/models',
    headers: { authorization: `Bearer ${headerOf(text)}` },
  }),
  path: (text) => ({ method: 'GET', url: `/v1/${encode(text)}` }),
  'model of the path': (text) => ({ method: 'GET', url: `/v1/models/${encode(text)}` }),
  'models type': (text) => ({ method: 'GET', url: `/v1/models?type=${encode(text)}` }),
  'models sub_type': (text) => ({ method: 'GET', url: `/v1/models?sub_type=${encode(text)}` }),
  'usage start': (text) => ({ method: 'GET', url: `/v1/usage?start=${encode(text)}` }),
  'usage end': (text) => ({ method: 'GET', url: `/v1/usage?end=${encode(text)}` }),
  'usage group_by': (text) => ({ method: 'GET', url: `/v1/usage?group_by=${encode(text)}` }),
  'notices before': (text) => ({ method: 'GET', url: `/v1/notices?before=${encode(text)}` }),
  'notices limit': (text) => ({ method: 'GET', url: `/v1/notices?limit=${encode(text)}` }),
  'admin account name': (text) => admin('POST', '/accounts', { name: `account ${text}` }),
  'admin account': (text) => admin('GET', `/accounts/${encode(text)}`),
  'admin account change': (text) => admin('PATCH', `/accounts/${encode(text)}`, { name: text }),
  'admin accounts after': (text) => admin('GET', `/accounts?after=${encode(text)}`),
  'admin key account': (text) => admin('POST', '/keys', { account: text }),
  'admin key name': (text) => admin('POST', '/keys', { account: 'user', name: text }),
  'admin key expires': (text) => admin('POST', '/keys', { account: 'user', expires: text }),
  'admin keys account': (text) => admin('GET', `/keys?account=${encode(text)}`),
  'admin keys after': (text) => admin('GET', `/keys?after=${encode(text)}`),
  'admin key end': (text) => admin('DELETE', `/keys/${encode(text)}`),
  'admin limits account': (text) => admin('PATCH', '/limits', { account: text, rpm: 1 }),
  'admin limits model': (text) => admin('PATCH', '/limits', { account: 'user', model: text, rpm: 1 }),
  'admin limits of': (text) => admin('GET', `/limits?account=${encode(text)}`),
  'admin limits after': (text) => admin('GET', `/limits?after=${encode(text)}`),
  'admin usage account': (text) => admin('GET', `/usage?account=${encode(text)}`),
  'admin usage group_by': (text) => admin('GET', `/usage?account=user&group_by=${encode(text)}`),
  'admin model': (text) => admin('PATCH', `/models/${encode(text)}`, { state: 'offline' }),
  'admin model state': (text) => admin('PATCH', '/models/tiny-chat', { state: text }),
  'admin model sunset': (text) => admin('PATCH', '/models/tiny-chat', { state: 'deprecated', sunset: text }),
  'admin model accounts': (text) => admin('PATCH', '/models/tiny-chat', { accounts: [text] }),
  'admin notice title': (text) => admin('POST', '/notices', { title: text, text: 'x' }),
  'admin notice text': (text) => admin('POST', '/notices', { title: 'x', text }),
  'admin notice account': (text) => admin('POST', '/notices', { title: 'x', text: 'x', account: text }),
  'admin notice model': (text) => admin('POST', '/notices', { title: 'x', text: 'x', model: text }),
  'admin notices before': (text) => admin('GET', `/notices?before=${encode(text)}`),
  'admin webhook url': (text) => admin('POST', '/webhooks', { url: `https://example.org/${text}` }),
  'admin webhook': (text) => admin('DELETE', `/webhooks/${encode(text)}`),
  'admin deliveries': (text) => admin('GET', `/webhooks/${encode(text)}/deliveries`),
  'admin audit target': (text) => admin('GET', `/audit?target=${encode(text)}`),
  'admin token': (text) => ({
    method: 'GET',
    url: '/admin/v1/accounts',
    headers: { authorization: `Bearer ${headerOf(text)}` },
  }),
};

let service: AdminService;
let workers: FakeWorker[];
let user: { id: string; secret: string };
beforeAll(async () => {
  service = await AdminService.start();
  const chatWorker = await FakeWorker.start(service.backplane, 'tiny-chat');
  const rerankWorker = await FakeWorker.start(service.backplane, 'tiny-rerank');
  workers = [chatWorker, rerankWorker];
  void chatWorker.answerAll(async (run) => {
    await run.start();
    await run.text('x');
    await run.finish();
  });
  void rerankWorker.answerAll(async (run) => {
    await run.start();
    await run.rank([0.5]);
  });
  user = await service.user('user');
});
afterAll(async () => {
  await service.close();
  for (const worker of workers) await worker.stop();
});

/** Nothing of it is what any attack should change. */
const untouched = async () => {
  const { account, apiKey, modelState, limitOverride } = service.database.client;
  return {
    user: await account.findUnique({ where: { id: user.id } }),
    verified: await account.count({ where: { OR: [{ verified: true }, { disabled: true }] } }),
    revoked: await apiKey.count({ where: { revokedAt: { not: null } } }),
    states: await modelState.count(),
    limits: await limitOverride.count(),
  };
};

it.each(Object.entries(fields))('%s is only ever text', async (_name, attack) => {
  const before = await untouched();
  for (const [index, [what, text]] of payloads.entries()) {
    service.log.length = 0;
    const { headers, ...request } = attack(text);
    const response = await service.app.inject({
      ...request,
      headers: { authorization: `Bearer ${user.secret}`, ...headers },
      // An address that sends many wrong keys is made to wait.
      remoteAddress: `192.0.2.${index}`,
    });
    expect(response.statusCode, what).toBeLessThan(500);
    if (response.statusCode >= 400) {
      expect(response.json(), what).toMatchObject({ code: expect.any(Number), data: null });
    }
    expect(Object.keys(response.headers).join(), what).not.toContain('forged');
    for (const line of service.log) {
      expect(line.match(lineBreaks), what).toHaveLength(1);
      const { forged, level } = JSON.parse(line);
      expect(forged, what).toBeUndefined();
      expect(level, what).toBeLessThan(50);
    }
  }
  expect(await untouched()).toEqual(before);
});
