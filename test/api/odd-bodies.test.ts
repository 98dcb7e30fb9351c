import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ChatJob } from '../../src/contract/job.js';
import { errorBody } from '../support/error-body.js';
import { parseResponses } from './support/raw-responses.js';
import { listen, openSocket, rawChat, readToEnd } from './support/sockets.js';
import { authorization, startTestService, type TestService } from './support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

function send(payload: string | Buffer, url = '/v1/chat/completions') {
  return service.app.inject({
    method: 'POST',
    url,
    headers: { authorization, 'content-type': 'application/json' },
    payload,
  });
}

/** A chat request with `fields` written into it as they are. */
const chat = (fields: string, content = '"a"') =>
  `{"model":"tiny-chat","messages":[{"role":"user","content":${content}}]${fields === '' ? '' : `,${fields}`}}`;

const nested = (depth: number, [open, close] = ['[', ']']) =>
  open!.repeat(depth) + (open === '[' ? '' : '1') + close!.repeat(depth);

describe('a body that is refused', () => {
  it.each([
    ['NaN', chat('"temperature":NaN'), /^body: malformed JSON: .*NaN/],
    ['Infinity', chat('"temperature":Infinity'), /^body: malformed JSON: /],
    ['a number beyond all', chat('"temperature":1e400'), /^temperature: must be a number, not Infinity$/],
    ['a number as a string', chat('"max_tokens":"5"'), /^max_tokens: must be a number, not a string$/],
    ['a boolean as a string', chat('"stream":"true"'), /^stream: must be true or false, not a string$/],
    ['an integer beyond 2^53', chat('"seed":9007199254740993'), /^seed: must be at most 9007199254740991$/],
    ['one below -2^53', chat('"seed":-9007199254740993'), /^seed: must be at least -9007199254740991$/],
    ['a negative zero where one is least', chat('"max_tokens":-0'), /^max_tokens: must be at least 1$/],
    ['a fraction where integers are', chat('"n":1.5'), /^n: must be an integer, not 1\.5$/],
    ['a lone surrogate as its model', '{"model":"\\ud800","messages":[]}', /^messages: must not be empty$/],
    ['no object', '[]', /^body: must be an object, not an array$/],
    ['two values', '{}{}', /^body: malformed JSON: /],
    ['a comment', '{/**/}', /^body: malformed JSON: /],
    ['a control character in a string', chat('', '"\n"'), /^body: malformed JSON: /],
    ['bytes that are not UTF-8', Buffer.from(chat('', '"é"'), 'latin1'), /^body: is not valid UTF-8$/],
    [
      'a surrogate encoded as bytes',
      Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
      /^body: is not valid UTF-8$/,
    ],
    [
      '10,000 arrays in each other',
      chat(`"metadata":{"a":${nested(10_000)}}`),
      /^body: is nested more than 256 levels deep$/,
    ],
    [
      "10,000 objects in a tool's schema",
      chat(
        `"tools":[{"type":"function","function":{"name":"f","parameters":${nested(10_000, ['{"a":', '}'])}}}]`,
      ),
      /^body: is nested more than 256 levels deep$/,
    ],
    ['a million brackets', '['.repeat(1_000_000), /^body: is nested more than 256 levels deep$/],
    [
      'a long key of a wrong kind',
      chat(`"logit_bias":{"${'k'.repeat(500_000)}":1}`),
      /^logit_bias\.k{100}: must be a token id$/,
    ],
    ['a __proto__ in the place of its fields', '{"__proto__":{"model":"tiny-chat"}}', /^model: is required$/],
  ] as const)('because of %s is 400 and says where', async (_what, payload, message) => {
    const response = await send(payload);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(errorBody(20015, expect.stringMatching(message)));
  });

  it('because of an unknown model with a huge name does not repeat it', async () => {
    const response = await send(
      JSON.stringify({ model: 'm'.repeat(900_000), messages: [{ role: 'user', content: 'a' }] }),
    );
    expect(response.statusCode).toBe(400);
    expect(response.json().code).toBe(20012);
    expect(response.body).not.toContain('mm');
  });

  it('because of a document among thousands names it', async () => {
    const documents = Array.from({ length: 10_000 }, (_, i) => (i === 9_876 ? 5 : 'a'));
    const response = await send(
      JSON.stringify({ model: 'tiny-rerank', query: 'q', documents }),
      '/v1/rerank',
    );
    expect(response.json()).toMatchObject({
      code: 20015,
      message: 'documents[9876]: only strings are supported',
    });
  });
});

describe('a body that is odd and right', () => {
  const jobOf = async (payload: string): Promise<ChatJob> => {
    const answer = send(payload);
    const run = await service.chat.next();
    await run.start();
    await run.finish();
    expect((await answer).statusCode).toBe(200);
    return run.job as ChatJob;
  };

  it('counts the last of duplicated keys', async () => {
    expect((await jobOf(chat('"temperature":1,"temperature":0.25'))).temperature).toBe(0.25);
  });

  it('may say zero with a minus', async () => {
    const { temperature, seed } = await jobOf(chat('"temperature":-0,"seed":-0'));
    expect([Math.abs(temperature!), Math.abs(seed!)]).toEqual([0, 0]);
  });

  it('may write integers as it likes', async () => {
    expect((await jobOf(chat('"max_tokens":5.0,"seed":1e3'))).maxTokens).toBe(5);
  });

  it('brings lone surrogates and control characters to the worker as they are', async () => {
    const { messages } = await jobOf(chat('', '"\\ud800 \\u0000 \\udfff"'));
    expect(messages[0]!.content).toBe('\ud800 \0 \udfff');
  });

  it('may hold a string as long as the limit allows', async () => {
    const content = 'x'.repeat(1_000_000);
    expect((await jobOf(chat('', JSON.stringify(content)))).messages[0]!.content).toBe(content);
  });

  it('may hold brackets and quotes in strings, as many as it likes', async () => {
    const content = '[{"\\"'.repeat(10_000);
    expect((await jobOf(chat('', JSON.stringify(content)))).messages[0]!.content).toBe(content);
  });

  it('may nest what it wants within reason', async () => {
    await jobOf(chat(`"metadata":{"a":${nested(250)}}`));
  });

  it('cannot reach a prototype', async () => {
    const job = await jobOf(
      chat('"__proto__":{"n":16,"polluted":1},"constructor":{"prototype":{"polluted":1}}'),
    );
    expect(job.n).toBe(1);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('a request that Node.js would answer itself', () => {
  it('has the body of an error when it lacks a Host header', async () => {
    const socket = await openSocket(await listen(service.app));
    socket.write('GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n');
    const [response] = parseResponses(await readToEnd(socket));
    expect(response!.status).toBe(400);
    expect(JSON.parse(response!.body)).toEqual(errorBody(20015, 'headers.host: is required'));
  });

  it('is answered when it expects something unknown', async () => {
    const socket = await openSocket(await listen(service.app));
    socket.write(rawChat({}, ['expect: miracles', 'connection: close']));
    const responses = readToEnd(socket);
    const run = await service.chat.next();
    await run.start();
    await run.finish();
    expect(parseResponses(await responses)[0]!.status).toBe(200);
  });

  it.each([
    [
      'headers that are too large',
      `GET /livez HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(1 << 20)}\r\n\r\n`,
      /^headers: /,
    ],
    ['an unknown method', 'BREW / HTTP/1.1\r\nhost: a\r\n\r\n', /^method: /],
    [
      'two lengths',
      'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
      /^request: /,
    ],
  ])('has the body of an error when it has %s', async (_what, text, message) => {
    const socket = await openSocket(await listen(service.app));
    const answer = readToEnd(socket);
    socket.write(text);
    const [response] = parseResponses(await answer);
    expect(response!.status).toBe(400);
    expect(JSON.parse(response!.body)).toEqual(errorBody(20015, expect.stringMatching(message)));
  });
});
