import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type InterruptedProcess, Interruption, interruptible } from '../../src/cli/interruption.js';

/** A process that notes with which codes it was told to exit, and a clock that stands still. */
function fakeProcess() {
  const emitter = new EventEmitter();
  const exits: unknown[] = [];
  const process = Object.assign(emitter, { exit: (code: unknown) => exits.push(code) });
  const clock = { ms: 0 };
  return {
    emitter,
    exits,
    clock,
    options: { process: process as unknown as InterruptedProcess, now: () => clock.ms },
  };
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

describe('interruptible', () => {
  it('gives what the work gives and listens no longer', async () => {
    const { emitter, options } = fakeProcess();

    expect(await interruptible(async () => 7, options)).toBe(7);
    expect(emitter.eventNames().flatMap((name) => emitter.listeners(name))).toEqual([]);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])('aborts the work on %s', async (signal, exitCode) => {
    const { emitter, exits, options } = fakeProcess();

    const running = interruptible(untilAborted, options);
    emitter.emit(signal, signal);

    await expect(running).rejects.toThrow(Interruption);
    await expect(running).rejects.toMatchObject({ exitCode });
    expect(exits).toEqual([]);
  });

  it('exits at once when it is asked a second time', async () => {
    const { emitter, exits, clock, options } = fakeProcess();
    const finished = new AbortController();

    const running = interruptible(() => untilAborted(finished.signal), options);
    emitter.emit('SIGINT', 'SIGINT');
    clock.ms += 301;
    emitter.emit('SIGINT', 'SIGINT');

    expect(exits).toEqual([130]);
    finished.abort(new Error('closed'));
    await expect(running).rejects.toThrow('closed');
  });

  it('takes a signal that comes twice, once from the terminal and once from npm, for one', async () => {
    const { emitter, exits, options } = fakeProcess();

    const running = interruptible(untilAborted, options);
    emitter.emit('SIGINT', 'SIGINT');
    emitter.emit('SIGINT', 'SIGINT');

    await expect(running).rejects.toThrow(Interruption);
    expect(exits).toEqual([]);
  });
});
