import { once } from 'node:events';
import { cp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { catalogueModelSchema, type Source } from '../../src/models/catalogue.js';
import { compiledFiles } from '../../src/models/manifest.js';
import {
  findPreparedModel,
  type PrepareOptions,
  type PrepareProgress,
  prepareModel,
} from '../../src/models/prepare-model.js';
import { measureStates } from '../../src/worker/measure-states.js';
import { temporaryFolder } from './temporary-folder.js';

const fixture = fileURLToPath(new URL('../fixtures/encoder/bert-bi-encoder', import.meta.url));

let cacheDir: string;
let source: string;

beforeEach(async () => {
  cacheDir = join(await temporaryFolder(), 'cache');
  source = join(await temporaryFolder(), 'model');
  await cp(fixture, source, { recursive: true });
});

function optionsFor(overrides: Partial<PrepareOptions> = {}, ...sources: Source[]): PrepareOptions {
  const entry = catalogueModelSchema.parse({
    id: 'm',
    task: 'rerank',
    weights: 'float32',
    sources: sources.length > 0 ? sources : [{ from: 'file', path: source }],
  });
  return {
    entry,
    catalogueFile: '/nowhere/headrace.models.json',
    cacheDir,
    hubUrl: 'http://127.0.0.1:9',
    python: 'python3',
    measureStates,
    signal: new AbortController().signal,
    ...overrides,
  };
}

/** A hub that has nothing, and counts how often it was asked. */
async function emptyHub(): Promise<{ url: string; asked: () => number }> {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    response.writeHead(404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked };
}

const compiledNames = () => readdir(join(cacheDir, 'compiled'));
const modified = async (folder: string) => (await stat(join(folder, compiledFiles.graph))).mtimeMs;

describe('prepareModel', () => {
  it('compiles a local model into the cache', async () => {
    const { folder, manifest } = await prepareModel(optionsFor());

    expect(relative(cacheDir, folder)).toBe(
      join('compiled', `${manifest.sourceSha256}-float32-${manifest.format}`),
    );
    expect((await readdir(folder)).sort()).toEqual(Object.values(compiledFiles).sort());
    expect(manifest).toMatchObject({ kind: 'encoder', scoring: 'bi-encoder', weights: 'float32' });
  });

  it('finds a local model by a path that is relative to the catalogue', async () => {
    const catalogueFile = join(source, '..', 'headrace.models.json');

    const { manifest } = await prepareModel(optionsFor({ catalogueFile }, { from: 'file', path: 'model' }));

    expect(manifest.kind).toBe('encoder');
  });

  it('compiles once', async () => {
    const first = await prepareModel(optionsFor());
    const before = await modified(first.folder);

    const second = await prepareModel(optionsFor());

    expect(second).toEqual(first);
    expect(await modified(second.folder)).toBe(before);
  });

  it('asks no source again that did not answer the first time', async () => {
    const hub = await emptyHub();
    const sources: Source[] = [
      { from: 'hub', repository: 'a/b', revision: 'main' },
      { from: 'file', path: source },
    ];
    const first = await prepareModel(optionsFor({ hubUrl: hub.url }, ...sources));
    const before = hub.asked();
    expect(before).toBeGreaterThan(0);

    expect(await prepareModel(optionsFor({ hubUrl: hub.url }, ...sources))).toEqual(first);
    expect(hub.asked()).toBe(before);
  });

  it('compiles anew when a local file has changed', async () => {
    const first = await prepareModel(optionsFor());
    const config = join(source, 'config.json');
    await writeFile(config, `${await readFile(config, 'utf8')}\n`);

    const second = await prepareModel(optionsFor());

    expect(second.folder).not.toBe(first.folder);
  });

  it('finds a model again whose files were only touched', async () => {
    const first = await prepareModel(optionsFor());
    const before = await modified(first.folder);
    await utimes(join(source, 'config.json'), 1, 1);

    expect(await prepareModel(optionsFor())).toEqual(first);
    expect(await modified(first.folder)).toBe(before);
  });

  it('compiles anew when the compiled folder was deleted', async () => {
    const { folder } = await prepareModel(optionsFor());
    await rm(folder, { recursive: true });

    expect((await prepareModel(optionsFor())).folder).toBe(folder);
    expect(await readdir(folder)).toContain(compiledFiles.manifest);
  });

  it('does without its memory when that is damaged', async () => {
    const first = await prepareModel(optionsFor());
    for (const name of await readdir(join(cacheDir, 'prepared'))) {
      await writeFile(join(cacheDir, 'prepared', name), '');
    }

    expect(await prepareModel(optionsFor())).toEqual(first);
  });

  it('gives the same folder to all who prepare a model at once, and leaves nothing else', async () => {
    const prepared = await Promise.all([1, 2, 3].map(() => prepareModel(optionsFor())));

    expect(new Set(prepared.map(({ folder }) => folder)).size).toBe(1);
    expect(await compiledNames()).toHaveLength(1);
    expect(await readdir(join(cacheDir, 'prepared'))).toHaveLength(1);
  });

  it('keeps each weights format apart', async () => {
    const { entry } = optionsFor();

    const float32 = await prepareModel(optionsFor());
    const int8 = await prepareModel(optionsFor({ entry: { ...entry, weights: 'int8' } }));

    expect(int8.folder).not.toBe(float32.folder);
    expect(int8.manifest.weights).toBe('int8');
  });

  it('tells how far it is', async () => {
    const seen: PrepareProgress[] = [];

    await prepareModel(optionsFor({ onProgress: (progress) => seen.push(progress) }));

    expect(seen[0]).toEqual({ stage: 'compiling', share: 0 });
    expect(seen.at(-1)).toEqual({ stage: 'compiling', share: 1 });
  });

  it('leaves nothing that looks done when it is interrupted', async () => {
    const controller = new AbortController();
    const interrupted = prepareModel(
      optionsFor({
        signal: controller.signal,
        onProgress: ({ share }) => share > 0 && controller.abort(new Error('Ctrl-C')),
      }),
    );

    await expect(interrupted).rejects.toThrow('Ctrl-C');
    expect(await compiledNames()).toEqual([]);
    expect(await findPreparedModel(optionsFor())).toBeUndefined();
  });

  it('says of each source why it did not answer', async () => {
    const failing = prepareModel(optionsFor({}, { from: 'file', path: '/nowhere/model' }));

    await expect(failing).rejects.toThrow('there is nothing at /nowhere/model');
  });
});

describe('findPreparedModel', () => {
  it('finds what was prepared and prepares nothing', async () => {
    expect(await findPreparedModel(optionsFor())).toBeUndefined();
    const prepared = await prepareModel(optionsFor());

    expect(await findPreparedModel(optionsFor())).toEqual(prepared);
  });

  it('finds nothing where the local files are gone', async () => {
    await prepareModel(optionsFor());
    await rm(source, { recursive: true });

    expect(await findPreparedModel(optionsFor())).toBeUndefined();
  });
});
