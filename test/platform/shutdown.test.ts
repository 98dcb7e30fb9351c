import { expect, test } from 'vitest';
import { forkTypeScript, type TypeScriptChild } from '../support/typescript-child.js';

const never = '600000';

async function start(...args: string[]): Promise<TypeScriptChild> {
  const child = forkTypeScript(new URL('./shutdown-program.ts', import.meta.url), args);
  expect(await child.next()).toBe('ready');
  return child;
}

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s closes everything, last opened first, and exits with 0',
  async (signal) => {
    const child = await start(never);
    child.process.kill(signal);
    expect(await child.ended).toBe(0);
    const closed = child.output().match(/^clos.*$/gm);
    expect(closed).toEqual(['closing last', 'closed last', 'closed first']);
  },
);

test('a closer that fails is logged and the others still run', async () => {
  const child = await start(never);
  child.process.kill('SIGTERM');
  await child.ended;
  expect(child.output()).toContain('closing failing failed');
  expect(child.output()).toContain('closed first');
});

test('a forked process shuts down when its parent lets go of it', async () => {
  const child = await start(never);
  child.process.disconnect();
  expect(await child.ended).toBe(0);
  expect(child.output()).toContain('closed first');
});

test('a forked process leaves a second signal to its parent, and ends at once when that has gone', async () => {
  const child = await start(never, 'stuck');
  child.process.kill('SIGINT');
  expect(await child.next()).toBe('closing');
  child.process.kill('SIGINT');
  expect(await child.next()).toBe('second signal');
  child.process.disconnect();
  expect(await child.ended).toBe(1);
  expect(child.output()).not.toContain('closed first');
});

test('a second signal ends a process that has no such parent at once', async () => {
  const child = await start(never, 'stuck', 'orphan');
  child.process.kill('SIGINT');
  await expect.poll(() => child.output()).toContain('closing last');
  child.process.kill('SIGINT');
  expect(await child.ended).toBe(1);
  expect(child.output()).not.toContain('closed first');
});

test('the deadline ends what does not close, and says what it was', async () => {
  const child = await start('1', 'stuck');
  child.process.kill('SIGINT');
  expect(await child.ended).toBe(1);
  expect(child.output()).toContain('closing last takes longer than 1 ms');
});
