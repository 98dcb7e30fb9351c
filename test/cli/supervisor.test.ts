import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Supervisor, type SupervisorOptions } from '../../src/cli/supervisor.js';
import { createLogger } from '../../src/platform/logger.js';

/** Tells its process id on standard error when it is ready, and ends when told to or when its parent is gone. */
const obedient = `
  process.on('disconnect', () => process.exit(0));
  process.on('SIGTERM', () => process.exit(0));
  process.stderr.write(process.pid + '\\n', () => process.send({ type: 'ready' }));
`;

let folder: string;
let supervisor: Supervisor;
let lines: PassThrough;
let log: PassThrough;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headrace-supervisor-'));
  lines = new PassThrough({ objectMode: true });
  log = new PassThrough({ objectMode: true });
  supervise({});
});

afterEach(async () => {
  supervisor.kill();
  await supervisor.stop({ graceMs: 0 });
  await rm(folder, { recursive: true });
});

function supervise(options: Partial<SupervisorOptions>): void {
  const logger = createLogger(
    { level: 'info', name: 'test' },
    { write: (line) => log.write(JSON.parse(line)) },
  );
  supervisor = new Supervisor({
    logger,
    onLine: (line) => lines.write(line),
    firstDelayMs: 1,
    maxDelayMs: 4,
    ...options,
  });
}

async function start(script: string, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const entry = join(folder, 'child.mjs');
  await writeFile(entry, script);
  await supervisor.start({
    name: 'the child',
    entry,
    args: ['--model', 'a'],
    env,
  });
}

async function next<T>(stream: PassThrough): Promise<T> {
  while (stream.readableLength === 0) await once(stream, 'readable');
  return stream.read() as T;
}

const nextPid = async () => Number(await next<string>(lines));
const nextMessage = async () => (await next<{ msg: string }>(log)).msg;

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('Supervisor', () => {
  it('gives a child its arguments and environment and waits until it says that it is ready', async () => {
    await start(
      `process.stderr.write(JSON.stringify([process.argv.slice(2), process.env.GREETING]) + '\\n', () =>
        process.send({ type: 'ready' }));
      process.on('disconnect', () => process.exit(0));`,
      { GREETING: 'hello' },
    );

    expect(JSON.parse(await next<string>(lines))).toEqual([['--model', 'a'], 'hello']);
  });

  it('starts a child again that was killed, and says so', async () => {
    await start(obedient);
    const first = await nextPid();

    process.kill(first, 'SIGKILL');

    const second = await nextPid();
    expect(second).not.toBe(first);
    expect(await nextMessage()).toBe('the child was ended by SIGKILL; starting it again in 0.001 s');
    expect(await nextMessage()).toBe('the child is ready again');
  });

  it('waits twice as long before each restart while a child keeps failing, up to the limit', async () => {
    await start(`${obedient} setImmediate(() => process.exit(7));`);

    const messages = [];
    while (messages.length < 4) {
      const message = await nextMessage();
      if (message.includes('again in')) messages.push(message.replace('the child exited with code 7; ', ''));
    }

    expect(messages).toEqual([
      'starting it again in 0.001 s',
      'starting it again in 0.002 s',
      'starting it again in 0.004 s',
      'starting it again in 0.004 s',
    ]);
  });

  it('forgets earlier failures once a child was ready for long enough', async () => {
    supervise({ healthyMs: 0 });
    await start(`${obedient} setImmediate(() => process.exit(7));`);

    const messages = [];
    while (messages.length < 3) {
      const message = await nextMessage();
      if (message.includes('again in')) messages.push(message);
    }

    expect(new Set(messages)).toEqual(
      new Set(['the child exited with code 7; starting it again in 0.001 s']),
    );
  });

  it('gives up on a child that exits before it was ever ready, with the reason from its log', async () => {
    const failing = start(
      `console.error(JSON.stringify({ level: 60, msg: 'no weights' })); process.exit(3);`,
    );

    await expect(failing).rejects.toThrow('the child exited with code 3: no weights');
  });

  it('stops children that obey', async () => {
    await start(obedient);
    const pid = await nextPid();

    await supervisor.stop({ graceMs: 20_000 });

    expect(isRunning(pid)).toBe(false);
  });

  it('kills children that have not stopped in time', async () => {
    await start(
      obedient.replace("process.on('SIGTERM', () => process.exit(0));", "process.on('SIGTERM', () => {});"),
    );
    const pid = await nextPid();

    await supervisor.stop({ graceMs: 10 });

    expect(isRunning(pid)).toBe(false);
    expect(await nextMessage()).toBe('the child did not stop within 0.01 s and was killed');
  });

  it('starts nothing again once it was stopped', async () => {
    supervise({ firstDelayMs: 60_000, maxDelayMs: 60_000 });
    await start(obedient);
    process.kill(await nextPid(), 'SIGKILL');
    await nextMessage();

    await supervisor.stop({ graceMs: 20_000 });

    await expect(start(obedient)).rejects.toThrow('stopped');
    expect(lines.readableLength).toBe(0);
  });

  it('does not pass Ctrl-C of a terminal on: a child has a process group of its own', async () => {
    await start(obedient);
    const pid = await nextPid();

    // Signals the group whose leader is the child; there is none when the child shares its parent's.
    process.kill(-pid, 'SIGTERM');

    expect(await nextMessage()).toContain('the child exited with code 0');
  });
});
