import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CatalogueError, loadCatalogue } from '../../src/models/catalogue-file.js';
import { temporaryFolder } from './temporary-folder.js';

const chat = { id: 'm', task: 'chat', sources: [{ from: 'file', path: 'model.gguf' }] };

async function refusal(contents: string | object): Promise<string> {
  const file = join(await temporaryFolder(), 'models.json');
  await writeFile(file, typeof contents === 'string' ? contents : JSON.stringify(contents));
  const error = await loadCatalogue(file).then(
    () => new Error('it was loaded'),
    (reason: Error) => reason,
  );
  expect(error).toBeInstanceOf(CatalogueError);
  expect(error.message.startsWith(`${file}: `)).toBe(true);
  return error.message.replaceAll(`${file}: `, '');
}

test('the default catalogue serves one chat model and one reranker, their wheels pinned', async () => {
  const file = fileURLToPath(new URL('../../headrace.models.json', import.meta.url));
  const { models } = await loadCatalogue(file);
  expect(models.map(({ id, task }) => [id, task])).toEqual([
    ['SmolLM2-135M-Instruct', 'chat'],
    ['all-MiniLM-L6-v2', 'rerank'],
  ]);
  for (const { sources } of models) {
    expect(sources.map(({ from }) => from)).toEqual(['hub', 'pip']);
    expect(sources[1]).toHaveProperty('sha256');
  }
});

test('what is left out has its defaults', async () => {
  const file = join(await temporaryFolder(), 'models.json');
  await writeFile(file, `\uFEFF${JSON.stringify({ models: [chat] })}`);
  expect((await loadCatalogue(file)).models).toEqual([
    {
      ...chat,
      weights: 'int8',
      created: 0,
      ownedBy: 'headrace',
      capabilities: [],
      defaults: { maxTokens: 512 },
    },
  ]);
});

test('a file that is not there is named, and how to name another', async () => {
  await expect(loadCatalogue('/nowhere/models.json')).rejects.toThrow(
    '/nowhere/models.json: there is no such file (HEADRACE_MODELS names another)',
  );
});

test('an error of JSON is told by line and column', async () => {
  expect(await refusal('{\n  "models": [\n    { "id": x }\n  ]\n}')).toBe(
    'not JSON: line 3, column 13: expected a value',
  );
  expect(await refusal('')).toBe('not JSON: line 1, column 1: expected a value');
});

test('every wrong value is told by its path', async () => {
  const lines = (
    await refusal({
      models: [
        { ...chat, id: '', weights: 'int3' },
        { ...chat, sources: [{ from: 'hub', repository: 'nobody' }] },
        { ...chat, sources: [{ from: 'file', path: 'x', sha256: 'ABC' }] },
      ],
    })
  ).split('\n');
  expect(lines).toHaveLength(4);
  expect(lines[0]).toMatch(/^models\[0\]\.id: /);
  expect(lines[1]).toMatch(/^models\[0\]\.weights: .*"float32"\|"int8"/);
  expect(lines[2]).toBe('models[1].sources[0].repository: must be owner/name');
  expect(lines[3]).toBe('models[2].sources[0].sha256: must be 64 lower-case hexadecimal digits');
});

test('a key that is not known is refused by its path, wherever it is', async () => {
  const hub = { from: 'hub', repository: 'a/b', revison: 'x' };
  const models = [
    { ...chat, contextLenght: 512, colour: 'red' },
    { ...chat, id: 'n', sources: [hub], defaults: { max_tokens: 5 }, limits: { rps: 1 } },
    { ...chat, id: 'o', task: 'rerank', capabilities: ['json'] },
    { ...chat, id: 'p', sources: [{ from: 'pip', package: 'a', version: '1', path: 'x', pathh: 'x' }] },
    { ...chat, id: 'q', sources: [{ from: 'file', path: 'x', gguf: 'x' }] },
  ];
  expect((await refusal({ models, modles: [] })).split('\n').sort()).toEqual([
    'models[0].colour: is not a known key',
    'models[0].contextLenght: is not a known key',
    'models[1].defaults.max_tokens: is not a known key',
    'models[1].limits.rps: is not a known key',
    'models[1].sources[0].revison: is not a known key',
    'models[2].capabilities: is not a known key',
    'models[3].sources[0].pathh: is not a known key',
    'models[4].sources[0].gguf: is not a known key',
    'modles: is not a known key',
  ]);
});

test('an unknown task and an unknown kind of source are told with those that exist', async () => {
  expect(await refusal({ models: [{ ...chat, task: 'draw' }] })).toMatch(
    /^models\[0\]\.task: .*chat.*rerank/,
  );
  expect(await refusal({ models: [{ ...chat, sources: [{ from: 'ftp' }] }] })).toMatch(
    /^models\[0\]\.sources\[0\]\.from: .*hub.*pip.*file/,
  );
});

test('a model listed twice is refused', async () => {
  expect(await refusal({ models: [chat, chat] })).toBe('models[1].id: "m" is listed twice');
});

test('something that is no catalogue is refused', async () => {
  expect(await refusal('[]')).toMatch(/expected object/);
});
