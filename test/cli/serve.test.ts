import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../support/postgres.js';
import { makeTempFolder, type TempFolder } from '../support/temp-folder.js';
import { type Environment, fixtureModel, headrace, isRunning, Serve, serveEnvironment } from './headrace.js';

let folder: TempFolder;
let environment: Environment;

beforeAll(async () => {
  folder = await makeTempFolder('serve');
  environment = await serveEnvironment(folder.path);
});

afterAll(() => folder.remove());

const keyFile = () => join(environment.HEADRACE_DATA_DIR!, 'dev-key');
const postmasterFile = () => join(environment.HEADRACE_DATA_DIR!, 'postgres/cluster/postmaster.pid');

/** The process id of the embedded Postgres; undefined while none runs. */
function postgres(): number | undefined {
  return existsSync(postmasterFile())
    ? Number(readFileSync(postmasterFile(), 'utf8').split('\n')[0])
    : undefined;
}

/** A service of the running test's own. */
async function startServe(): Promise<Serve> {
  const started = new Serve(environment);
  onTestFinished(async () => void (await started.end('SIGKILL')));
  await started.line(/is ready at/);
  return started;
}

async function untilGone(pids: readonly number[]): Promise<void> {
  while (pids.some(isRunning)) await delay(20);
}

describe('headrace serve', () => {
  let serve: Serve;

  beforeAll(async () => {
    serve = await Serve.start(environment);
  });

  afterAll(async () => {
    await serve.end('SIGTERM');
  });

  it('answers clients that need no options', async () => {
    const said = await headrace(['chat', 'hello', '--max-tokens', '4'], environment);
    const ranked = await headrace(['rerank', '--query', 'q', '--documents', '-'], environment, {
      input: 'one\ntwo\n',
    });

    expect(said).toMatchObject({ exitCode: 0, stderr: '' });
    expect(said.stdout.trim()).not.toBe('');
    expect(ranked).toMatchObject({ exitCode: 0, stderr: '' });
    expect(ranked.stdout.trim().split('\n')).toHaveLength(3);
  });

  it('keeps the development key from other users and says where it is', async () => {
    expect((await stat(keyFile())).mode & 0o777).toBe(0o600);
    expect(serve.output).toContain(`The API key is in ${keyFile()}`);
    expect(serve.output).not.toContain(readFileSync(keyFile(), 'utf8').trim());
  });

  it('shows a first request', async () => {
    expect(await serve.line(/curl/)).toContain(
      `curl -N http://127.0.0.1:${environment.HEADRACE_PORT}/v1/chat/completions`,
    );
  });

  it('knows keys that are created and revoked beside it', async () => {
    const created = await headrace(['keys', 'create', 'other', '--json'], environment);
    const { id, secret } = JSON.parse(created.stdout) as { id: string; secret: string };

    expect(
      await headrace(['chat', 'hello', '--max-tokens', '1', '--key', secret], environment),
    ).toMatchObject({
      exitCode: 0,
    });
    const listed = await headrace(['keys', 'list', '--json'], environment);
    expect(JSON.parse(listed.stdout)).toContainEqual(expect.objectContaining({ id, name: 'other' }));
    expect(await headrace(['keys', 'revoke', id], environment)).toMatchObject({ exitCode: 0 });
    expect(JSON.parse((await headrace(['keys', 'list', '--json'], environment)).stdout)).toContainEqual(
      expect.objectContaining({ id, revokedAt: expect.any(String) }),
    );
  });

  it('gives its workers memory in huge pages', async () => {
    for (const pid of await serve.workers(2)) {
      const variables = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0');
      expect(variables).toContainEqual(expect.stringMatching(/^GLIBC_TUNABLES=.*glibc\.malloc\.hugetlb=1/));
    }
  });

  it('starts a worker again that was killed', async () => {
    const [worker] = await serve.workers(2);

    process.kill(worker!, 'SIGKILL');

    await serve.line(/is ready again/);
    expect(await headrace(['chat', 'hello', '--max-tokens', '1'], environment)).toMatchObject({
      exitCode: 0,
    });
    const documents = { input: 'one\n' };
    expect(
      await headrace(['rerank', '--query', 'q', '--documents', '-'], environment, documents),
    ).toMatchObject({
      exitCode: 0,
    });
  });

  it('is refused on a data folder that another one uses', async () => {
    const { exitCode, stderr } = await headrace(['serve'], { ...environment, HEADRACE_PORT: '0' });

    expect(stderr).toMatch(/^headrace: Another Headrace \(process \d+\) is using .* HEADRACE_DATA_DIR .*\n$/);
    expect(exitCode).toBe(1);
  });

  it('is refused on a port that is in use', async () => {
    const elsewhere = { ...environment, HEADRACE_DATA_DIR: join(folder.path, 'other') };

    const { exitCode, stderr } = await headrace(['serve'], elsewhere);

    expect(stderr).toMatch(/^headrace: Port \d+ of 127.0.0.1 is in use: .* HEADRACE_PORT\.\n$/);
    expect(exitCode).toBe(1);
    expect(existsSync(elsewhere.HEADRACE_DATA_DIR)).toBe(false);
  });
});

describe('the end of headrace serve', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'on %s is that of every process, with exit code 0',
    async (signal) => {
      const serve = await startServe();
      const processes = [...(await serve.workers(2)), postgres()!];
      expect(processes.filter(isRunning)).toHaveLength(3);

      expect(await serve.end(signal)).toBe(0);

      expect(processes.filter(isRunning)).toEqual([]);
      expect(postgres()).toBeUndefined();
    },
  );

  it('leaves nothing to compile for the next one', async () => {
    const serve = await startServe();
    await serve.end('SIGTERM');

    expect(serve.output).not.toContain('compiling');
  });

  it('ends a start that is under way', async () => {
    const hub = createServer(() => process.kill(serve.pid, 'SIGINT'));
    await once(hub.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      hub.closeAllConnections();
      hub.close();
    });
    const { port } = hub.address() as { port: number };
    const models = [{ id: 'm', task: 'chat', sources: [{ from: 'hub', repository: 'nobody/nothing' }] }];
    const catalogue = join(folder.path, 'hub.json');
    await writeFile(catalogue, JSON.stringify({ models }));

    const serve = new Serve({
      ...environment,
      HEADRACE_MODELS: catalogue,
      HF_ENDPOINT: `http://127.0.0.1:${port}`,
    });
    onTestFinished(async () => void (await serve.end('SIGKILL')));

    await expect(serve.line(/is ready at/)).rejects.toThrow('It ended');
    expect(postgres()).toBeUndefined();
  });

  it('by SIGKILL takes every other process with it', async () => {
    const serve = await startServe();
    const processes = [...(await serve.workers(2)), postgres()!];

    await serve.end('SIGKILL');

    await untilGone(processes);
  });
});

describe('commands without a running service', () => {
  it('start the embedded Postgres for their moment', async () => {
    const created = await headrace(['keys', 'create', 'alone'], environment);
    const listed = await headrace(['keys', 'list'], environment);

    expect(created).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^sk-\w+\n$/) });
    expect(listed.stdout).toContain('alone');
    expect(postgres()).toBeUndefined();
  });

  it('migrate a database of its own and say what was done', async () => {
    const database = await createTestDatabase({ empty: true });
    onTestFinished(() => database.drop());
    const own = { ...environment, DATABASE_URL: database.url };

    expect((await headrace(['migrate'], own)).stdout).toMatch(/^Applied \d+_\w+.*\.\n$/);
    expect((await headrace(['migrate'], own)).stdout).toBe('The schema is up to date.\n');
  });

  it('tell clients how to start one', async () => {
    const { exitCode, stderr } = await headrace(['chat', 'hello', '--key', 'k'], environment);

    expect(stderr).toMatch(/^headrace: No service answers at .* "npm start" .*\n$/);
    expect(exitCode).toBe(1);
  });
});

describe('headrace serve that cannot start', () => {
  const unreachable = '127.0.0.1:9';

  it.each([
    ['DATABASE_URL', `postgres://u:secret@${unreachable}/d`],
    ['REDIS_URL', `redis://:secret@${unreachable}`],
  ])('says in one line that %s cannot be reached, without its password', async (variable, url) => {
    const { exitCode, stderr } = await headrace(['serve'], { ...environment, [variable]: url });

    expect(stderr).toMatch(
      new RegExp(`^headrace: ${variable}: ${unreachable} cannot be .*ECONNREFUSED.*\\n$`),
    );
    expect(stderr).not.toContain('secret');
    expect(exitCode).toBe(1);
    expect(postgres()).toBeUndefined();
  });

  it('says of each source why it has not the model', async () => {
    const models = [{ id: 'm', task: 'chat', sources: [{ from: 'file', path: '/nowhere/model' }] }];
    const catalogue = join(folder.path, 'missing.json');
    await writeFile(catalogue, JSON.stringify({ models }));

    const { exitCode, stderr } = await headrace(['serve'], { ...environment, HEADRACE_MODELS: catalogue });

    expect(stderr).toContain('headrace: No source has the files of m:');
    expect(stderr).toContain('/nowhere/model');
    expect(exitCode).toBe(1);
    expect(postgres()).toBeUndefined();
  });

  it('says why a worker did not start', async () => {
    const models = [fixtureModel('m', 'chat', 'encoder/bert-cross-encoder')];
    const catalogue = join(folder.path, 'mistaken.json');
    await writeFile(catalogue, JSON.stringify({ models }));

    const { exitCode, stderr } = await headrace(['serve'], { ...environment, HEADRACE_MODELS: catalogue });

    const reports = stderr.split('\n').filter((line) => line.includes('the catalogue says'));
    expect(reports).toEqual([
      expect.stringMatching(/^headrace: the worker of m exited with code 1: m: the catalogue says "chat"/),
    ]);
    expect(exitCode).toBe(1);
    expect(postgres()).toBeUndefined();
  });

  it('names a catalogue that is not there', async () => {
    const { exitCode, stderr } = await headrace(['serve'], {
      ...environment,
      HEADRACE_MODELS: '/nowhere.json',
    });

    expect(stderr).toMatch(/^headrace: \/nowhere.json: .*HEADRACE_MODELS.*\n$/);
    expect(exitCode).toBe(1);
  });
});
