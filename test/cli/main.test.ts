import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTempFolder, type TempFolder } from '../support/temp-folder.js';
import { json, LocalService } from './client/local-service.js';
import { headrace, programPath } from './headrace.js';

const completions = 'POST /v1/chat/completions';
const chunk = (content: string) =>
  `data: ${JSON.stringify({
    id: 'r',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })}\n\n`;

/** `headrace chat`, running. */
function ask({ url }: { url: string }) {
  const child = spawn(process.execPath, [programPath, 'chat', 'Hello', '--model', 'm'], {
    env: { PATH: process.env.PATH, HEADRACE_URL: url, HEADRACE_KEY: 'k' },
  });
  const errors: string[] = [];
  child.stderr.on('data', (data) => errors.push(String(data)));
  return { child, errors };
}

it('is a program of its own as it is built, since npx makes it one only once for each folder', async () => {
  const { stdout } = await promisify(execFile)(programPath, ['--version']);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

let folder: TempFolder;

beforeEach(async () => {
  folder = await makeTempFolder('main');
});

afterEach(() => folder.remove());

describe('the program', () => {
  it('reads .env in its working folder', async () => {
    await using service = await LocalService.start({ [completions]: json({}, 500) });
    await writeFile(join(folder.path, '.env'), `HEADRACE_URL=${service.url}\nHEADRACE_KEY=sk-file\n`);

    await headrace(['chat', 'Hello', '--model', 'm'], {}, { cwd: folder.path });

    expect(service.received[0]!.authorization).toBe('Bearer sk-file');
  });

  it('prefers the environment to .env', async () => {
    await using service = await LocalService.start({ [completions]: json({}, 500) });
    await writeFile(join(folder.path, '.env'), 'HEADRACE_URL=http://127.0.0.1:9\nHEADRACE_KEY=sk-file\n');

    await headrace(['chat', 'Hello', '--model', 'm'], { HEADRACE_URL: service.url }, { cwd: folder.path });

    expect(service.received[0]!.authorization).toBe('Bearer sk-file');
  });

  it('names the variable that is wrong', async () => {
    const { exitCode, stdout, stderr } = await headrace(['models', 'list'], { HEADRACE_PORT: 'many' });

    expect(stderr).toMatch(/^headrace: HEADRACE_PORT: .*\n$/);
    expect(stdout).toBe('');
    expect(exitCode).toBe(1);
  });

  it('exits with 2 and usage for wrong arguments, whatever the environment', async () => {
    const { exitCode, stderr } = await headrace(['chat'], { HEADRACE_PORT: 'many' });

    expect(stderr).toContain('Usage: headrace chat');
    expect(exitCode).toBe(2);
  });

  it('shows where an error came from when debugging', async () => {
    const { stderr } = await headrace(['models', 'list'], {
      HEADRACE_LOG_LEVEL: 'debug',
      HEADRACE_MODELS: '/nowhere.json',
    });

    expect(stderr).toContain('/nowhere.json: there is no such file');
    expect(stderr).toMatch(/\n +at /);
  });

  it('is quiet when its reader has seen enough', async () => {
    await using service = await LocalService.start({
      [completions]: (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const timer = setInterval(() => response.write(chunk('more ')), 5);
        response.on('close', () => clearInterval(timer));
      },
    });
    const { child, errors } = ask(service);
    await once(child.stdout, 'data');

    child.stdout.destroy();

    expect(await once(child, 'close')).toEqual([0, null]);
    expect(errors).toEqual([]);
  });

  it('cancels its request on Ctrl-C and exits as shells expect', async () => {
    let hangUp = () => {};
    const gone = new Promise<void>((resolve) => {
      hangUp = resolve;
    });
    await using service = await LocalService.start({
      [completions]: (response) => {
        response.on('close', hangUp);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(chunk('Go'));
      },
    });
    const { child, errors } = ask(service);
    await once(child.stdout, 'data');

    child.kill('SIGINT');

    expect(await once(child, 'close')).toEqual([130, null]);
    expect(errors).toEqual([]);
    await gone;
  });
});
