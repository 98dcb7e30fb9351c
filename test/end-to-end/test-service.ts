import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type ChatResponse, chatResponseSchema } from '../../src/contract/chat.js';
import { openDatabase } from '../../src/platform/database/database.js';
import { migrate } from '../../src/platform/database/migrate.js';
import { createKey } from '../../src/platform/keys.js';
import { createLogger } from '../../src/platform/logger.js';
import type { BackplaneSettings } from '../support/backplanes.js';
import { freePort } from '../support/free-port.js';
import type { ToolTemplate } from '../support/tool-templates.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The models that end-to-end tests serve: small ones with random weights. */
export const chatModel = 'fixture/llama';
export const rerankModel = 'fixture-cross-encoder';
export const xlmRerankModel = 'fixture-xlm-roberta';
export const biRerankModel = 'fixture-bi-encoder';

const chatFixture = resolve(root, 'test/fixtures/decoder/llama-tied');

const rerankEntry = (id: string, folder: string) => ({
  id,
  task: 'rerank',
  weights: 'float32',
  threads: 1,
  sources: [{ from: 'file', path: resolve(root, 'test/fixtures/encoder', folder) }],
});

/** The chat model again, that takes 4,096 positions: the descriptions of tools fill more than the others have. */
export const wideChatModel = 'fixture/llama-wide';
const wideContext = 4_096;
const wideFolder = 'llama-wide';

const catalogueEntries = [
  {
    id: chatModel,
    task: 'chat',
    weights: 'float32',
    threads: 1,
    kvMiB: 64,
    defaults: { maxTokens: 64 },
    sources: [{ from: 'file', path: chatFixture }],
  },
  {
    id: wideChatModel,
    task: 'chat',
    weights: 'float32',
    threads: 1,
    kvMiB: 64,
    defaults: { maxTokens: 512 },
    sources: [{ from: 'file', path: wideFolder }],
  },
  rerankEntry(rerankModel, 'bert-cross-encoder'),
  rerankEntry(xlmRerankModel, 'xlm-roberta-cross-encoder'),
  rerankEntry(biRerankModel, 'bert-bi-encoder'),
];

/** The wide chat model once more, under another template; its first control token begins calls. */
const toolModelEntry = (id: string) => ({
  ...catalogueEntries.find((entry) => entry.id === wideChatModel)!,
  id,
  sources: [{ from: 'file', path: id }],
});

/** A process of the service, run from `dist` by the command line as an operator would. */
export class ServiceProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
  #output = '';

  constructor(args: readonly string[], environment: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, [join(root, 'dist/cli/main.js'), ...args], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: environment.HEADRACE_DATA_DIR,
    });
    const killOnExit = () => this.child.kill('SIGKILL');
    process.on('exit', killOnExit);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    this.ended = new Promise((settle) => {
      this.child.once('close', () => {
        process.off('exit', killOnExit);
        settle();
      });
    });
  }

  /** Everything it wrote so far. */
  get output(): string {
    return this.#output;
  }

  /** What it is and whether it is still there, for whoever waits for it in vain. */
  get state(): string {
    const { pid, exitCode, signalCode, spawnargs } = this.child;
    const how = this.hasEnded ? `ended with ${signalCode ?? exitCode}` : 'is running';
    return `Process ${pid} (${spawnargs.slice(2).join(' ')}) ${how}.`;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  async kill(): Promise<void> {
    // A stopped process does not die of SIGTERM, but does of this.
    this.child.kill('SIGKILL');
    await this.ended;
  }

  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    this.child.kill('SIGCONT');
    const patience = new AbortController();
    await Promise.race([
      this.ended,
      delay(10_000, undefined, { signal: patience.signal }).then(() => this.child.kill('SIGKILL')),
    ]).catch(() => {});
    patience.abort();
    await this.ended;
  }
}

export interface TestServiceOptions {
  /** Environment variables beside those that name the servers. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Models in the catalogue: the chat model and one reranker when left out. */
  readonly models?: readonly string[];
  /** Chat models with these templates beside them, by id. */
  readonly toolModels?: Readonly<Record<string, ToolTemplate>>;
  /** Models that get a worker process; all in the catalogue when left out. */
  readonly workers?: readonly string[];
  readonly apis?: number;
}

/** A service starts in a hook, which may take longer than a test: a busy disk keeps whoever flushes a file waiting. */
const startWithinMs = 100_000;

/** A whole service in child processes: API processes and a worker for each model, with an account and a key. */
export class TestService {
  readonly key: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly apis: { url: string; process: ServiceProcess; environment: Record<string, string> }[] = [];
  readonly workers = new Map<string, ServiceProcess>();
  readonly #folder: string;

  static async start(settings: BackplaneSettings, options: TestServiceOptions = {}): Promise<TestService> {
    const folder = await mkdtemp(join(tmpdir(), 'headrace-service-'));
    const modelsFile = join(folder, 'models.json');
    const toolModels = Object.entries(options.toolModels ?? {});
    const listed = options.models ?? [chatModel, rerankModel];
    const served = [...listed, ...toolModels.map(([id]) => id)];
    const models = catalogueEntries.filter(({ id }) => listed.includes(id));
    await writeFile(
      modelsFile,
      JSON.stringify({ models: [...models, ...toolModels.map(([id]) => toolModelEntry(id))] }),
    );
    if (listed.includes(wideChatModel)) await widen(chatFixture, join(folder, wideFolder));
    for (const [id, template] of toolModels) {
      await widen(chatFixture, join(folder, id));
      await useTemplate(join(folder, id), template);
    }
    await migrate(settings.databaseUrl);
    const database = openDatabase(settings.databaseUrl, {
      logger: createLogger({ level: 'silent', name: 'test' }),
    });
    const { secret } = await createKey({ database, accountName: 'test', keyName: 'test' });
    await database.close();
    const service = new TestService(folder, secret, {
      HEADRACE_DATA_DIR: folder,
      HEADRACE_CACHE_DIR: join(folder, 'cache'),
      HEADRACE_MODELS: modelsFile,
      HEADRACE_LOCK_SECONDS: '2',
      DATABASE_URL: settings.databaseUrl,
      ...(settings.redisUrl !== undefined && { REDIS_URL: settings.redisUrl }),
      ...options.environment,
    });
    try {
      for (const model of options.workers ?? served) service.startWorker(model);
      for (let count = 0; count < (options.apis ?? 1); count++) await service.#addApi();
      if (options.workers === undefined) await service.ready(startWithinMs);
      return service;
    } catch (error) {
      await service.close();
      throw error;
    }
  }

  private constructor(folder: string, key: string, environment: Readonly<Record<string, string>>) {
    this.#folder = folder;
    this.key = key;
    this.environment = environment;
  }

  get url(): string {
    return this.apis[0]!.url;
  }

  startWorker(model: string): ServiceProcess {
    const worker = new ServiceProcess(['worker', '--model', model], this.environment);
    this.workers.set(model, worker);
    return worker;
  }

  async #addApi(): Promise<void> {
    const port = await freePort();
    const environment = { ...this.environment, HEADRACE_PORT: String(port) };
    this.apis.push({
      url: `http://127.0.0.1:${port}`,
      process: new ServiceProcess(['api'], environment),
      environment,
    });
  }

  /** Starts a new process in the place of API process `index`, on the same port. */
  restartApi(index: number): void {
    const api = this.apis[index]!;
    api.process = new ServiceProcess(['api'], api.environment);
  }

  /** Resolves when every API process says that the service is ready, each within that time. */
  async ready(withinMs?: number): Promise<void> {
    for (const api of this.apis) {
      await until(
        async () => (await fetch(`${api.url}/readyz`)).status === 200,
        () => this.#outputs(),
        withinMs,
      );
    }
  }

  post(path: string, body: unknown, init: { signal?: AbortSignal; api?: number } = {}): Promise<Response> {
    return fetch(this.apis[init.api ?? 0]!.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(init.signal && { signal: init.signal }),
    });
  }

  chat(
    fields: Record<string, unknown> = {},
    init: { signal?: AbortSignal; api?: number } = {},
  ): Promise<Response> {
    const messages = [{ role: 'user', content: 'hello there' }];
    return this.post('/v1/chat/completions', { model: chatModel, messages, temperature: 0, ...fields }, init);
  }

  /** A whole reply, checked against the contract. */
  async complete(fields: Record<string, unknown> = {}): Promise<ChatResponse> {
    const response = await this.chat(fields);
    const body = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} ${body}`);
    return chatResponseSchema.parse(JSON.parse(body));
  }

  async close(): Promise<void> {
    const processes = [...this.apis.map((api) => api.process), ...this.workers.values()];
    await Promise.all(processes.map((process) => process.stop()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  #outputs(): string {
    const processes = [...this.apis.map((api) => api.process), ...this.workers.values()];
    return processes.map(({ state, output }) => `${state}\n${output}`).join('\n');
  }
}

/** Copies a model without learned positions and lets it take more of them. */
async function widen(source: string, target: string): Promise<void> {
  await cp(source, target, { recursive: true });
  const configFile = join(target, 'config.json');
  const config = JSON.parse(await readFile(configFile, 'utf8'));
  await writeFile(configFile, JSON.stringify({ ...config, max_position_embeddings: wideContext }));
}

/** Gives a model another template, and its first control token the spelling that begins calls there. */
async function useTemplate(folder: string, { source, marker }: ToolTemplate): Promise<void> {
  await writeFile(join(folder, 'chat_template.jinja'), source);
  const tokenizerFile = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(await readFile(tokenizerFile, 'utf8'));
  const [first] = tokenizer.added_tokens;
  const { [first.content]: id, ...vocab } = tokenizer.model.vocab;
  tokenizer.model.vocab = { ...vocab, [marker]: id };
  first.content = marker;
  await writeFile(tokenizerFile, JSON.stringify(tokenizer));
}

/** Asks until the answer is yes. A question that throws was not answered yet. The test's own time-out bounds it. */
export async function until(
  question: () => Promise<boolean> | boolean,
  describe: () => string = () => '',
  withinMs = 25_000,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    let last: unknown;
    try {
      if (await question()) return;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) {
      throw new Error(`Not within ${withinMs} ms. ${describe()}`, { cause: last });
    }
    await delay(25);
  }
}

/** The data of the events of a streamed reply, as they come. */
export async function* events(response: Response): AsyncGenerator<string> {
  if (!response.body) throw new Error('The response has no body.');
  let text = '';
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    let end = text.indexOf('\n\n');
    while (end !== -1) {
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      if (event.startsWith('data: ')) yield event.slice('data: '.length);
      end = text.indexOf('\n\n');
    }
  }
}

/** The text of choice 0 and the last event of a whole streamed reply. */
export async function collect(response: Response): Promise<{ text: string; last: string }> {
  let text = '';
  let last = '';
  for await (const data of events(response)) {
    last = data;
    if (data !== '[DONE]') text += JSON.parse(data).choices?.[0]?.delta?.content ?? '';
  }
  return { text, last };
}
