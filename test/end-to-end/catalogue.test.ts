import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type Environment, headrace, Serve, serveEnvironment } from '../cli/headrace.js';
import { Receiver } from '../platform/webhooks/receiver.js';
import { type BackplaneKit, describeBackplanes } from '../support/backplanes.js';
import { makeTempFolder, type TempFolder } from '../support/temp-folder.js';
import { chatModel, collect, rerankModel, TestService, until } from './test-service.js';

describeBackplanes('an operator who decides about models', (kit: BackplaneKit) => {
  let service: TestService;
  let receiver: Receiver;
  beforeEach(async () => {
    receiver = await Receiver.start();
    service = await TestService.start(kit.settings, { apis: 2 });
  });
  afterEach(async () => {
    await service.close();
    await receiver[Symbol.asyncDispose]();
  });

  const operate = async (...line: string[]) => {
    const { exitCode, stdout, stderr } = await headrace(line, service.environment);
    expect(stderr.replace(/^Notices go to .*\n/, '')).toBe('');
    expect(exitCode).toBe(0);
    return stdout;
  };
  const codeOf = async (api: number) => {
    const response = await service.chat({ max_tokens: 1 }, { api });
    return ((await response.json()) as { code?: number }).code;
  };

  it('has every process follow, lets what runs end, and tells whoever wants to know', async () => {
    await operate('webhooks', 'add', receiver.url);
    const running = await service.chat({ stream: true, max_tokens: 200, stop: ['never said'] });

    await operate('models', 'set', chatModel, '--state', 'offline');

    for (const api of [0, 1]) await until(async () => (await codeOf(api)) === 20012);
    expect((await collect(running)).last).toBe('[DONE]');
    const [webhook] = await receiver.count(1);
    expect(JSON.parse(webhook!.body).data).toMatchObject({ kind: 'model.offline', model: chatModel });
    const notices = await fetch(`${service.url}/v1/notices`, {
      headers: { authorization: `Bearer ${service.key}` },
    });
    expect(((await notices.json()) as { data: unknown[] }).data).toMatchObject([{ kind: 'model.offline' }]);

    await operate('models', 'set', chatModel, '--state', 'online', '--access', 'listed');
    for (const api of [0, 1]) await until(async () => (await codeOf(api)) === 30003);
    await operate('models', 'set', chatModel, '--accounts', 'test');
    for (const api of [0, 1]) await until(async () => (await codeOf(api)) === undefined);
  });

  it('deprecates a model, whose responses say so', async () => {
    await operate('models', 'set', rerankModel, '--state', 'deprecated', '--sunset', '2099-06-01T12:00:00Z');
    const rerank = () => service.post('/v1/rerank', { model: rerankModel, query: 'q', documents: ['d'] });
    await until(async () => (await rerank()).headers.get('sunset') === 'Mon, 01 Jun 2099 12:00:00 GMT');
    const response = await rerank();
    expect(response.status).toBe(200);
    expect(response.headers.get('deprecation')).toMatch(/^@\d{10}$/);
  });
});

describe('headrace serve', () => {
  let folder: TempFolder;
  let environment: Environment;
  beforeAll(async () => {
    folder = await makeTempFolder('catalogue');
    environment = await serveEnvironment(folder.path);
  });
  afterAll(() => folder.remove());

  it('has a worker for each model that is online, as operators decide while it runs', async () => {
    const put = async (state: string) => {
      const { exitCode } = await headrace(['models', 'set', 'a-reranker', '--state', state], environment);
      expect(exitCode).toBe(0);
    };
    await put('offline');
    const serve = new Serve(environment);
    onTestFinished(async () => void (await serve.end('SIGTERM')));
    await serve.line(/is ready at/);
    await serve.workers(1);
    expect(serve.output).not.toContain('a-reranker');
    const url = `http://127.0.0.1:${environment.HEADRACE_PORT}/readyz`;
    await until(async () => (await fetch(url)).ok);

    await put('online');
    await serve.workers(2);
    const ranked = await headrace(['rerank', '--query', 'q', '--documents', '-'], environment, {
      input: 'd\n',
    });
    expect(ranked.exitCode).toBe(0);

    await put('offline');
    await serve.line(/the worker of a-reranker has left/);
    expect((await fetch(url)).ok).toBe(true);
  });
});
