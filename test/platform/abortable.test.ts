import { expect, it, onTestFinished } from 'vitest';
import { abortable, within } from '../../src/platform/abortable.js';

const reason = new Error('it is over');

/** Rejections that nobody takes while the test runs. */
function unhandledRejections(): unknown[] {
  const others = process.rawListeners('unhandledRejection');
  const seen: unknown[] = [];
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (error) => seen.push(error));
  onTestFinished(() => {
    process.removeAllListeners('unhandledRejection');
    for (const listener of others) process.on('unhandledRejection', listener as () => void);
  });
  return seen;
}

/** Node.js looks for rejections that nobody took before it goes on to this. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

it('settles as the work does', async () => {
  const { signal } = new AbortController();
  expect(await abortable(Promise.resolve(1), signal)).toBe(1);
  await expect(abortable(Promise.reject(reason), signal)).rejects.toBe(reason);
});

it('rejects as soon as the signal aborts', async () => {
  const ending = new AbortController();
  const waiting = abortable(new Promise(() => {}), ending.signal);
  ending.abort(reason);
  await expect(waiting).rejects.toBe(reason);
});

it.each([true, false])('rejects when the signal aborted before, done (%s) or not', async (done) => {
  const work = done ? Promise.resolve() : new Promise(() => {});
  await expect(abortable(work, AbortSignal.abort(reason))).rejects.toBe(reason);
});

it.each(['before', 'meanwhile'])('leaves no rejection behind when it was aborted %s', async (when) => {
  const seen = unhandledRejections();
  const ending = new AbortController();
  let fail = (_: Error) => {};
  const work = new Promise<never>((_, reject) => {
    fail = reject;
  });
  if (when === 'before') ending.abort(reason);
  const waiting = abortable(work, ending.signal);
  ending.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  fail(new Error('later'));
  await nextTurn();
  expect(seen).toEqual([]);
});

it('says what did not answer in time', async () => {
  const never = within(new Promise(() => {}), { ms: 10, what: 'The queue' });
  await expect(never).rejects.toThrow('The queue did not answer within 0.01 s');
});

it('hands on what is in time', async () => {
  const limit = { ms: 60_000, what: 'The queue' };
  expect(await within(Promise.resolve(1), limit)).toBe(1);
  await expect(within(Promise.reject(reason), limit)).rejects.toBe(reason);
});
