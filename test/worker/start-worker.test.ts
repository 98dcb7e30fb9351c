import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { controlChannel } from '../../src/contract/names.js';
import { loadConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/logger.js';
import { type StartedWorker, startWorker } from '../../src/worker/start-worker.js';
import { fixtureModel } from '../cli/headrace.js';
import { threadScript } from '../engine/support/thread-script.js';
import { type BackplaneSettings, describeBackplanes } from '../support/backplanes.js';
import { makeTempFolder, type TempFolder } from '../support/temp-folder.js';
import { readFixture } from './support/fixture-model.js';
import { ReplyLog } from './support/reply-log.js';
import { apiId, chatJob, rerankJob } from './support/workbench.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const chatModel = 'fixture/llama';
const rerankModel = 'fixture-cross-encoder';

const chatExpected = z
  .object({
    cases: z.array(
      z.object({
        messages: z.array(z.object({ role: z.enum(['system', 'user']), content: z.string() })),
        prompt_ids: z.array(z.int()),
        greedy_ids: z.array(z.int()),
        greedy_text: z.string(),
      }),
    ),
  })
  .parse(JSON.parse(readFixture('decoder/llama-tied', 'expected.json')));
const rerankExpected = z
  .object({ query: z.string(), documents: z.array(z.string()), relevance_scores: z.array(z.number()) })
  .parse(JSON.parse(readFixture('encoder/bert-cross-encoder', 'expected.json')));

let folder: TempFolder;
beforeAll(async () => {
  folder = await makeTempFolder('worker');
  const models = [
    fixtureModel(chatModel, 'chat', 'decoder/llama-tied'),
    fixtureModel(rerankModel, 'rerank', 'encoder/bert-cross-encoder'),
  ];
  await writeFile(join(folder.path, 'models.json'), JSON.stringify({ models }));
});
afterAll(() => folder.remove());

function environment({ settings }: { settings: BackplaneSettings }): Record<string, string> {
  return {
    HEADRACE_MODELS: join(folder.path, 'models.json'),
    HEADRACE_CACHE_DIR: join(folder.path, 'cache'),
    HEADRACE_MAX_SEQUENCES: '4',
    DATABASE_URL: settings.databaseUrl,
    ...(settings.redisUrl !== undefined && { REDIS_URL: settings.redisUrl }),
  };
}

describeBackplanes('a worker with its engine', (kit) => {
  async function start(modelId: string): Promise<StartedWorker> {
    const worker = await startWorker({
      config: loadConfig(environment(kit)),
      modelId,
      logger: createLogger({ level: 'silent', name: 'test' }),
      signal: new AbortController().signal,
      engineScript: threadScript(),
    });
    onTestFinished(() => worker.close({ drainMs: 0 }));
    return worker;
  }

  test('answers chats with the text of the reference', async () => {
    await start(chatModel);
    const backplane = await kit.open();
    const log = await ReplyLog.listen(backplane.channel, apiId);
    const queue = backplane.queue(chatModel);
    for (const [index, { messages, greedy_ids }] of chatExpected.cases.entries()) {
      await queue.add(chatJob({ id: `r${index}`, messages, temperature: 0, maxTokens: greedy_ids.length }));
    }
    for (const [index, { prompt_ids, greedy_ids, greedy_text }] of chatExpected.cases.entries()) {
      expect(await log.ending(`r${index}`)).toMatchObject({
        type: 'done',
        spent: { promptTokens: prompt_ids.length, completionTokens: greedy_ids.length },
      });
      expect(log.textOf(`r${index}`)).toBe(greedy_text);
    }
  });

  test('ranks documents with the scores of the reference', async () => {
    await start(rerankModel);
    const backplane = await kit.open();
    const log = await ReplyLog.listen(backplane.channel, apiId);
    const { query, documents, relevance_scores } = rerankExpected;
    await backplane.queue(rerankModel).add(rerankJob({ query, documents }));
    const ending = await log.ending('request-1');
    expect(ending).toMatchObject({
      type: 'ranked',
      scores: relevance_scores.map((score) => expect.closeTo(score, 4)),
    });
  });

  test('frees the engine of a request that was cancelled', async () => {
    const { engine } = await start(chatModel);
    const backplane = await kit.open();
    const log = await ReplyLog.listen(backplane.channel, apiId);
    await backplane.queue(chatModel).add(chatJob({ maxTokens: 400, logitBias: { '2': -100 } }));
    await log.until(({ frames }) => frames.some(({ type }) => type === 'delta'));
    expect(await engine.counters()).toMatchObject({ running: 1 });
    await backplane.channel.publish(
      controlChannel(chatModel),
      JSON.stringify({ type: 'cancel', id: 'request-1' }),
    );
    expect(await log.ending('request-1')).toMatchObject({ type: 'cancelled' });
    await vi.waitFor(async () => expect(await engine.counters()).toMatchObject({ running: 0, cancelled: 1 }));
  });
});

/** The built worker, forked as its supervisor does. */
function forkWorker(
  model: string,
  settings: BackplaneSettings,
  variables: Record<string, string> = {},
): ChildProcess {
  const child = fork(join(root, 'dist/worker/main.js'), ['--model', model], {
    env: { PATH: process.env.PATH, ...environment({ settings }), ...variables },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

test.each([
  ['a model that is not in the catalogue', 'nothing', {}, /nothing is not in .*models\.json, which lists/],
  ['a server that is away', chatModel, {}, /DATABASE_URL: 127\.0\.0\.1:1 cannot be reached/],
  ['no server', chatModel, { DATABASE_URL: '' }, /needs REDIS_URL or DATABASE_URL/],
  ['a wrong variable', chatModel, { HEADRACE_LOCK_SECONDS: 'x' }, /HEADRACE_LOCK_SECONDS/],
])(
  'the worker process says what is wrong and exits with code 1: %s',
  async (_what, model, variables, message) => {
    const away = { databaseUrl: 'postgresql://127.0.0.1:1/none', redisUrl: undefined };
    const child = forkWorker(model, away, variables);
    const [[code], output] = await Promise.all([once(child, 'exit'), text(child.stderr!)]);
    expect(output).toMatch(message);
    expect(code).toBe(1);
  },
);

describeBackplanes('the worker process', (kit) => {
  test('tells its parent that it is ready, and leaves on SIGTERM with code 0', async () => {
    const child = forkWorker(chatModel, kit.settings);
    const [message] = await once(child, 'message');
    expect(message).toEqual({ type: 'ready' });
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  test('says how far it is with a model that has to be made', async () => {
    const variables = { HEADRACE_CACHE_DIR: join(folder.path, `cache-of-${kit.kind}`) };
    const child = forkWorker(chatModel, kit.settings, variables);
    const output = text(child.stderr!);
    await once(child, 'message');
    child.kill('SIGTERM');
    const told = (await output).split('\n').flatMap((line) => (line ? [JSON.parse(line).msg as string] : []));
    const quarters = [0, 25, 50, 75, 100].map((percent) => `compiling ${chatModel}  ${percent}%`);
    expect(told.slice(0, quarters.length + 3)).toEqual([
      `starting a worker of ${chatModel}`,
      ...quarters,
      `loading ${chatModel}`,
      'the worker takes requests',
    ]);
  });

  test('leaves when its parent has gone', async () => {
    const child = forkWorker(chatModel, kit.settings);
    await once(child, 'message');
    child.disconnect();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});
