import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type ChatOptions, chat } from '../../../src/cli/client/chat.js';
import { ServiceClient } from '../../../src/cli/client/service-client.js';
import { ServiceError } from '../../../src/contract/errors.js';
import { json, LocalService, models, pieces, TestTerminal } from './local-service.js';

const completions = 'POST /v1/chat/completions';
const chatModels = 'GET /v1/models?type=text&sub_type=chat';
const plain: ChatOptions = { message: 'Hello?', model: 'a-model', stream: true, json: false };

const usage = {
  prompt_tokens: 3,
  completion_tokens: 2,
  total_tokens: 5,
  prompt_tokens_details: { cached_tokens: 0 },
};
const reply = {
  id: 'r1',
  object: 'chat.completion',
  created: 1,
  model: 'a-model',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Good day.' }, finish_reason: 'stop' }],
  usage,
};

function event(delta: object, finishReason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  const chunk = { id: 'r1', object: 'chat.completion.chunk', created: 1, model: 'a-model', choices };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

const stream = (...texts: string[]) => [
  event({ role: 'assistant', content: '' }),
  ...texts.map((content) => event({ content })),
  event({}, 'stop'),
  'data: [DONE]\n\n',
];

async function ask(
  service: { url: string },
  options: Partial<ChatOptions> = {},
  { terminal = new TestTerminal(), signal = new AbortController().signal } = {},
): Promise<string> {
  const client = new ServiceClient({ url: service.url, key: 'sk-secret', keyOrigin: 'in /tmp/dev-key' });
  await chat({ ...plain, ...options }, { client, terminal, signal });
  return terminal.output;
}

describe('headrace chat', () => {
  it('prints a streamed reply and ends it with a line break', async () => {
    await using service = await LocalService.start({ [completions]: pieces(stream('Good', ' day.')) });

    expect(await ask(service)).toBe('Good day.\n');
    expect(service.received).toEqual([
      {
        method: 'POST',
        url: '/v1/chat/completions',
        authorization: 'Bearer sk-secret',
        body: { model: 'a-model', messages: [{ role: 'user', content: 'Hello?' }], stream: true },
      },
    ]);
  });

  it('prints the same reply when the stream is split at every byte', async () => {
    const bytes = Buffer.from(stream('Grüße', ' 水.').join(''));
    const parts = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
    await using service = await LocalService.start({ [completions]: pieces(parts) });

    expect(await ask(service)).toBe('Grüße 水.\n');
  });

  it('prints text as soon as it comes', async () => {
    const terminal = new TestTerminal();
    let finish: (() => void) | undefined;
    await using service = await LocalService.start({
      [completions]: async (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(event({ role: 'assistant', content: 'Good' }));
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        response.end(stream(' day.').join(''));
      },
    });

    const asked = ask(service, {}, { terminal });
    await once(terminal.stdout, 'readable');
    expect(terminal.output).toBe('Good');
    finish!();
    expect(await asked).toBe(' day.\n');
  });

  it('prints a reply that comes in one piece', async () => {
    await using service = await LocalService.start({ [completions]: json(reply) });

    expect(await ask(service, { stream: false })).toBe('Good day.\n');
    expect(service.received[0]!.body).toMatchObject({ stream: false });
  });

  it("prints the service's answer as JSON", async () => {
    await using service = await LocalService.start({ [completions]: json(reply) });

    expect(JSON.parse(await ask(service, { json: true }))).toEqual(reply);
  });

  it('asks the first chat model when none is named', async () => {
    await using service = await LocalService.start({
      [chatModels]: models('first', 'second'),
      [completions]: pieces(stream('Yes.')),
    });

    await ask(service, { model: undefined });

    expect(service.received[1]!.body).toMatchObject({ model: 'first' });
  });

  it('says that no chat model is online', async () => {
    await using service = await LocalService.start({ [chatModels]: models() });

    await expect(ask(service, { model: undefined })).rejects.toThrow('no chat model online');
  });

  it('sends the system message and the sampling it was given', async () => {
    await using service = await LocalService.start({ [completions]: pieces(stream('Yes.')) });

    await ask(service, { system: 'Be brief.', maxTokens: 9, temperature: 0, seed: 4 });

    expect(service.received[0]!.body).toEqual({
      model: 'a-model',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello?' },
      ],
      max_tokens: 9,
      temperature: 0,
      seed: 4,
      stream: true,
    });
  });

  it('reads the message from standard input for -', async () => {
    await using service = await LocalService.start({ [completions]: pieces(stream('Yes.')) });

    await ask(service, { message: '-' }, { terminal: new TestTerminal({ input: 'Piped ü\n' }) });

    expect(service.received[0]!.body).toMatchObject({ messages: [{ content: 'Piped ü\n' }] });
  });

  it('is interrupted while it waits for standard input', async () => {
    const controller = new AbortController();
    const terminal = new TestTerminal({ input: null });

    const asked = ask(
      { url: 'http://127.0.0.1:9' },
      { message: '-' },
      { terminal, signal: controller.signal },
    );
    controller.abort(new Error('Ctrl-C'));

    await expect(asked).rejects.toThrow('Ctrl-C');
  });

  it('sends no empty message', async () => {
    await expect(ask({ url: 'http://127.0.0.1:9' }, { message: ' ' })).rejects.toThrow('it is empty');
  });

  it('keeps escape sequences in a reply from a terminal', async () => {
    await using service = await LocalService.start({ [completions]: pieces(stream('a\u001b[2Jb\tc')) });

    expect(await ask(service, {}, { terminal: new TestTerminal({ isTTY: true }) })).toBe('a [2Jb\tc\n');
    expect(await ask(service)).toBe('a\u001b[2Jb\tc\n');
  });

  it('closes the connection when it is interrupted', async () => {
    const controller = new AbortController();
    let gone: Promise<unknown> | undefined;
    await using service = await LocalService.start({
      [completions]: (response) => {
        gone = once(response, 'close');
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(event({ role: 'assistant', content: 'Go' }));
      },
    });
    const terminal = new TestTerminal();

    const asked = ask(service, {}, { terminal, signal: controller.signal });
    await once(terminal.stdout, 'readable');
    controller.abort(new Error('Ctrl-C'));

    await expect(asked).rejects.toThrow('Ctrl-C');
    await gone;
  });

  it('is interrupted while it waits for the first byte', async () => {
    const controller = new AbortController();
    await using service = await LocalService.start({
      [completions]: () => controller.abort(new Error('Ctrl-C')),
    });

    await expect(ask(service, {}, { signal: controller.signal })).rejects.toThrow('Ctrl-C');
  });
});

describe('a client that is refused', () => {
  it('tells how to start a service where none answers', async () => {
    const { url } = await stoppedService();

    await expect(ask({ url })).rejects.toThrow(
      `No service answers at ${url}. Start one with "npm start" or "headrace serve", or name another with --url or HEADRACE_URL.`,
    );
  });

  it('tells which key was refused and never the key', async () => {
    const body = new ServiceError('unauthorized').toBody();
    await using service = await LocalService.start({ [completions]: json(body, 401) });

    await expect(ask(service)).rejects.toThrow(
      /^The API key is missing or wrong. \(HTTP 401, code 20001\) The key that was used is in \/tmp\/dev-key.$/,
    );
  });

  it('tells status, code and message of an error', async () => {
    const body = new ServiceError('invalidParameter', 'temperature: Too big').toBody();
    await using service = await LocalService.start({ [completions]: json(body, 400) });

    await expect(ask(service)).rejects.toThrow('temperature: Too big (HTTP 400, code 20015)');
  });

  it('tells an error that comes in the middle of a stream', async () => {
    const error = `data: ${JSON.stringify(new ServiceError('internal').toBody())}\n\n`;
    await using service = await LocalService.start({
      [completions]: pieces([event({ role: 'assistant', content: 'Good' }), error]),
    });

    const terminal = new TestTerminal();
    await expect(ask(service, {}, { terminal })).rejects.toThrow('Unknown error. (code 50500)');
    expect(terminal.output).toBe('Good\n');
  });

  it('tells a stream that was cut off from one that ended', async () => {
    await using service = await LocalService.start({
      [completions]: pieces([event({ role: 'assistant', content: 'Good' })]),
    });

    await expect(ask(service)).rejects.toThrow('The connection ended in the middle of the reply.');
  });

  it('tells a broken connection from an end', async () => {
    await using service = await LocalService.start({
      [completions]: (response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('{"id":', () => response.destroy());
      },
    });

    await expect(ask(service, { stream: false })).rejects.toThrow(
      'The connection ended in the middle of the reply.',
    );
  });

  it.each([
    ['an error', 502],
    ['a page', 200],
  ])('tells %s that is not of this service', async (_, status) => {
    await using service = await LocalService.start({
      [completions]: (response) => void response.writeHead(status).end('<html>hello</html>'),
    });

    await expect(ask(service, { stream: false })).rejects.toThrow('is the URL right?');
  });
});

/** The address of a service that has gone: nothing listens there now. */
async function stoppedService(): Promise<{ url: string }> {
  await using service = await LocalService.start({});
  return { url: service.url };
}
