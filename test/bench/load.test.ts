import { afterEach, describe, expect, it } from 'vitest';
import { HttpClient } from '../../bench/load/http.js';
import { measure } from '../../bench/load/measure.js';
import { runLoad } from '../../bench/load/run-load.js';
import { buildSend, checkService, type Workload } from '../../bench/load/service.js';
import { summarize } from '../../bench/load/summary.js';
import { delta, event, type LoadServer, startLoadServer } from './load-server.js';

const fixed = (value: number) => ({ min: value, max: value });
const workload: Workload = {
  task: 'chat',
  model: 'some-model',
  seed: 1,
  words: fixed(10),
  maxTokens: fixed(3),
  documents: fixed(4),
  extra: {},
};
const never = new AbortController().signal;
const usage = { prompt_tokens: 20, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 5 } };
const stream = ['a', 'b'].map((text) => event(delta(text))).join('');
const wholeStream = `${event(delta(''))}${stream}${event({ choices: [], usage })}${event('[DONE]')}`;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(answer: Parameters<typeof startLoadServer>[0]): Promise<LoadServer> {
  const server = await startLoadServer(answer);
  closing.push(() => server.close());
  return server;
}

function connect(url: string, key?: string): HttpClient {
  const client = new HttpClient(url, key);
  closing.push(() => client.close());
  return client;
}

describe('a chat exchange', () => {
  it('counts the tokens that the server reports', async () => {
    const { url } = await start((_, response) => response.end(wholeStream));
    const exchange = await buildSend(connect(url), workload)(0, never);

    expect(exchange).toMatchObject({ promptTokens: 20, cachedTokens: 5, outputTokens: 3 });
  });

  it('counts pieces of text where the server reports no tokens', async () => {
    const { url } = await start((_, response) => response.end(`${stream}${event('[DONE]')}`));
    const exchange = await buildSend(connect(url), workload)(0, never);

    expect(exchange).toMatchObject({ promptTokens: 0, outputTokens: 2 });
  });

  it('has its first token when the first text comes, and a gap between each two', async () => {
    const { url } = await start((_, response) => {
      response.write(event({ choices: [{ delta: { role: 'assistant', content: '' } }] }));
      const written = performance.now();
      const wait = () => {
        if (performance.now() - written < 30) setImmediate(wait);
        else response.end(wholeStream);
      };
      wait();
    });
    const exchange = await buildSend(connect(url), workload)(0, never);

    expect(exchange.firstTokenMs).toBeGreaterThanOrEqual(29);
    expect(exchange.gapsMs).toHaveLength(1);
    expect(exchange.latencyMs).toBeGreaterThanOrEqual(exchange.firstTokenMs! + exchange.gapsMs[0]!);
  });

  it('says what to do with the words before them', async () => {
    const server = await start((_, response) => response.end(wholeStream));
    for (const ask of [undefined, 'Repeat these words:']) {
      await buildSend(connect(server.url), { ...workload, ...(ask !== undefined && { ask }) })(0, never);
    }
    const [plain, asking] = server.received.map(({ body }) => body.messages[0].content);
    expect(asking).toBe(`Repeat these words: ${plain}`);
  });

  it('asks for a stream with usage, for so many tokens, with what is shared and extra', async () => {
    const server = await start((_, response) => response.end(wholeStream));
    const send = buildSend(connect(server.url, 'sk-1'), {
      ...workload,
      sharedWords: 7,
      extra: { temperature: 0 },
    });
    await send(0, never);
    await send(1, never);
    const [first, second] = server.received;

    expect(first).toMatchObject({
      path: '/v1/chat/completions',
      authorization: 'Bearer sk-1',
      body: {
        model: 'some-model',
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: 3,
        temperature: 0,
      },
    });
    expect(first!.body.messages[0].role).toBe('system');
    expect(first!.body.messages[0]).toEqual(second!.body.messages[0]);
    expect(first!.body.messages[1]).not.toEqual(second!.body.messages[1]);
  });
});

describe('a kept connection', () => {
  it('that the server closed meanwhile is replaced, and the request made all the same', async () => {
    const server = await start((_, response) => {
      const { socket } = response;
      response.end(wholeStream);
      // Not announced in the response, and only once the client has gone on to use the connection.
      socket!.once('data', () => socket!.resetAndDestroy());
    });
    const send = buildSend(connect(server.url), workload);
    await send(0, never);

    expect(await send(1, never)).toMatchObject({ outputTokens: 3 });
  });
});

describe('a rerank exchange', () => {
  const rerank: Workload = { ...workload, task: 'rerank' };

  it('counts documents and tokens', async () => {
    const server = await start(({ body }, response) => {
      const results = body.documents.map((_: string, index: number) => ({ index, relevance_score: 0 }));
      response.end(JSON.stringify({ results, tokens: { total_tokens: 99 } }));
    });
    const exchange = await buildSend(connect(server.url), rerank)(0, never);

    expect(exchange).toMatchObject({ documents: 4, promptTokens: 99 });
    expect(server.received[0]).toMatchObject({ path: '/v1/rerank', body: { model: 'some-model' } });
  });

  it('fails when documents are missing from the answer', async () => {
    const { url } = await start((_, response) => response.end('{"results":[]}'));

    await expect(buildSend(connect(url), rerank)(0, never)).rejects.toThrow('0 results');
  });
});

describe('a load', () => {
  it('makes exactly the requests asked for, with no more than its clients at once', async () => {
    let under = 0;
    let most = 0;
    const indexes: number[] = [];
    const load = await runLoad({
      send: async (index) => {
        indexes.push(index);
        most = Math.max(most, ++under);
        await new Promise(setImmediate);
        under--;
        return { latencyMs: 1, gapsMs: [], promptTokens: 0, cachedTokens: 0, outputTokens: 0, documents: 0 };
      },
      clients: 3,
      requests: 10,
      firstIndex: 100,
      signal: never,
    });

    expect(load.exchanges).toHaveLength(10);
    expect(indexes.sort((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, i) => 100 + i));
    expect(most).toBe(3);
  });

  it('counts what goes wrong by its message, and goes on', async () => {
    let count = 0;
    const { url } = await start((_, response) => {
      count++;
      if (count % 2 === 0) response.writeHead(503).end('{"code":50505,"message":"overloaded","data":null}');
      else response.end(wholeStream);
    });
    const send = buildSend(connect(url), workload);
    const load = await runLoad({ send, clients: 1, requests: 6, firstIndex: 0, signal: never });

    expect(load.exchanges).toHaveLength(3);
    expect([...load.failures]).toEqual([['HTTP 503: overloaded', 3]]);
  });

  it.each([
    ['breaks off', stream, 'the stream ended before its end'],
    [
      'tells of an error',
      `${stream}${event({ code: 50500, message: 'broken' })}`,
      'the stream broke off: broken',
    ],
  ])('takes a stream that %s for a failure', async (_, text, message) => {
    const { url } = await start((_request, response) => response.end(text));
    const send = buildSend(connect(url), workload);
    const load = await runLoad({ send, clients: 1, requests: 1, firstIndex: 0, signal: never });

    expect([...load.failures.keys()]).toEqual([message]);
  });

  it('begins nothing after its time, and waits for what is under way', async () => {
    const begun = performance.now();
    const load = await runLoad({
      send: async () => {
        while (performance.now() - begun < 60) await new Promise(setImmediate);
        return { latencyMs: 1, gapsMs: [], promptTokens: 0, cachedTokens: 0, outputTokens: 0, documents: 0 };
      },
      clients: 2,
      seconds: 0.05,
      firstIndex: 0,
      signal: never,
    });

    expect(load.exchanges).toHaveLength(2);
    expect(load.elapsedMs).toBeGreaterThan(50);
  });

  it('ends at once when interrupted, with what was answered and no failure', async () => {
    const interruption = new AbortController();
    const server = await start((_, response) => {
      if (server.received.length <= 2) response.end(wholeStream);
      else {
        response.write(stream);
        interruption.abort();
      }
    });
    const send = buildSend(connect(server.url), workload);
    const load = await runLoad({
      send,
      clients: 1,
      requests: 10,
      firstIndex: 0,
      signal: interruption.signal,
    });

    expect(load.exchanges).toHaveLength(2);
    expect(load.failures.size).toBe(0);
  });
});

describe('a measurement', () => {
  it('never makes the same request twice, warm-up included', async () => {
    const server = await start((_, response) => response.end(wholeStream));
    const send = buildSend(connect(server.url), workload);
    const summaries = await measure({ send, clients: [1, 2], requests: 5, warmUp: 1, signal: never });
    const prompts = server.received.map(({ body }) => body.messages[0].content);

    expect(summaries.map(({ clients, requests }) => [clients, requests])).toEqual([
      [1, 5],
      [2, 5],
    ]);
    expect(prompts).toHaveLength(1 + 5 + 2 + 5);
    expect(new Set(prompts).size).toBe(prompts.length);
  });

  it('has rates over the elapsed time', () => {
    const exchange = {
      latencyMs: 100,
      firstTokenMs: 10,
      gapsMs: [5, 15],
      promptTokens: 20,
      cachedTokens: 4,
      outputTokens: 30,
      documents: 0,
    };
    const summary = summarize({
      clients: 1,
      elapsedMs: 2000,
      exchanges: [exchange, exchange],
      failures: new Map([['no', 3]]),
      clientCpu: 0.05,
    });

    expect(summary).toMatchObject({
      requests: 2,
      errors: 3,
      requestsPerSecond: 1,
      outputTokensPerSecond: 30,
      promptTokens: 20,
      outputTokens: 30,
      firstTokenMs: { p50: 10 },
      interTokenMs: { p50: 10 },
      latencyMs: { p50: 100 },
    });
  });
});

describe('a check before the load', () => {
  const check = (client: HttpClient) => checkService(client, workload, never);

  it('says that nothing answers', async () => {
    const server = await startLoadServer((_, response) => response.end());
    await server.close();

    await expect(check(connect(server.url))).rejects.toThrow(/does not answer: connect ECONNREFUSED/);
  });

  it('says whether a key is missing or refused', async () => {
    const { url } = await start((_, response) => response.writeHead(401).end('{"message":"no"}'));

    await expect(check(connect(url))).rejects.toThrow('wants a key, given with --key or HEADRACE_KEY');
    await expect(check(connect(url, 'sk-1'))).rejects.toThrow('refuses the key (HTTP 401: no)');
  });

  it('lists the models there when it is refused', async () => {
    const { url } = await start(({ path }, response) => {
      if (path === '/v1/models') response.end('{"data":[{"id":"a"},{"id":"b"}]}');
      else response.writeHead(400).end('{"message":"no such model"}');
    });

    await expect(check(connect(url))).rejects.toThrow(/\(HTTP 400: no such model\)\. Models there: a, b$/);
  });
});
