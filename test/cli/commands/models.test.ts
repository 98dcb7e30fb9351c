import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { runCompileModels, runListModels, runPullModels } from '../../../src/cli/commands/models.js';
import { loadConfig } from '../../../src/platform/config.js';
import { makeTempFolder } from '../../support/temp-folder.js';
import { TestTerminal } from '../client/local-service.js';
import { fixtureModel } from '../headrace.js';

let folder: string;

beforeEach(async () => {
  const made = await makeTempFolder('models');
  onTestFinished(() => made.remove());
  folder = made.path;
  const models = [
    fixtureModel('a-chat-model', 'chat', 'decoder/llama-tied'),
    fixtureModel('a-reranker', 'rerank', 'encoder/bert-cross-encoder'),
  ];
  await writeFile(join(folder, 'models.json'), JSON.stringify({ models }));
});

const context = ({ json }: { json: boolean }) => ({
  config: loadConfig({
    HEADRACE_MODELS: join(folder, 'models.json'),
    HEADRACE_CACHE_DIR: join(folder, 'cache'),
  }),
  terminal: new TestTerminal(),
  signal: new AbortController().signal,
  json,
});

async function listed(): Promise<unknown[]> {
  const listing = context({ json: true });
  await runListModels(listing);
  return JSON.parse(listing.terminal.output);
}

describe('headrace models', () => {
  it('list is a table of the catalogue', async () => {
    const listing = context({ json: false });

    await runListModels(listing);

    const [head, first, second] = listing.terminal.output.split('\n');
    expect(head).toMatch(/^id +task +weights +context +compiled +sources$/);
    expect(first).toMatch(/^a-chat-model +chat +float32 +no +file .*llama-tied$/);
    expect(second).toMatch(/^a-reranker +rerank +float32 +no +file .*bert-cross-encoder$/);
  });

  it('compile takes other weights than the catalogue says, when told to', async () => {
    const compiling = context({ json: true });
    await runCompileModels({ ids: ['a-chat-model'], weights: 'int4' }, compiling);
    expect(JSON.parse(compiling.terminal.output)).toEqual([
      expect.objectContaining({ id: 'a-chat-model', weights: 'int4' }),
    ]);
  });

  it('compile makes the models that are named ready, which list then shows', async () => {
    const compiling = context({ json: true });

    await runCompileModels({ ids: ['a-reranker'] }, compiling);

    const [{ folder: compiled }] = JSON.parse(compiling.terminal.output);
    expect(compiling.terminal.errors).toContain('a-reranker: compiling  100%\n');
    expect(await listed()).toEqual([
      expect.objectContaining({ id: 'a-chat-model', folder: null }),
      expect.objectContaining({ id: 'a-reranker', folder: compiled }),
    ]);
  });

  it('pull finds the files of every model and compiles none', async () => {
    const pulling = context({ json: true });

    await runPullModels([], pulling);

    expect(JSON.parse(pulling.terminal.output)).toEqual([
      expect.objectContaining({ id: 'a-chat-model', path: expect.stringContaining('llama-tied') }),
      expect.objectContaining({ id: 'a-reranker', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }),
    ]);
    expect(await listed()).toEqual([
      expect.objectContaining({ folder: null }),
      expect.objectContaining({ folder: null }),
    ]);
  });

  it('names a model that is not in the catalogue, and those that are', async () => {
    await expect(runPullModels(['another'], context({ json: false }))).rejects.toThrow(
      '"another" is not in the catalogue, which lists a-chat-model, a-reranker.',
    );
  });
});
