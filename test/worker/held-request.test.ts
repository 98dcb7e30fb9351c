import { expect, onTestFinished, test, vi } from 'vitest';
import { type Ending, HeldRequest, RequestEnded } from '../../src/worker/held-request.js';
import { HeldRequests } from '../../src/worker/held-requests.js';
import type { Reply } from '../../src/worker/publish.js';
import { chatJob } from './support/workbench.js';

const overloaded: Ending = { type: 'failed', error: 'overloaded' };

function hold(fields: Parameters<typeof chatJob>[0] = {}, now = () => Date.now()): HeldRequest {
  const reply = { send: () => {}, delivered: async () => {} } as unknown as Reply;
  const request = new HeldRequest({ job: chatJob(fields), reply, clock: { now } });
  onTestFinished(() => request.release());
  return request;
}

const endingOf = ({ signal }: HeldRequest) =>
  signal.reason instanceof RequestEnded ? signal.reason.ending : undefined;

test('the first ending counts', () => {
  const request = hold();
  request.end({ type: 'cancelled' });
  request.end(overloaded);
  expect(endingOf(request)).toEqual({ type: 'cancelled' });
});

test('one that comes after its deadline has ended already', () => {
  expect(endingOf(hold({ deadlineAt: Date.now() - 1 }))).toEqual({
    type: 'failed',
    error: 'deadlineExceeded',
  });
});

test('a deadline further off than timers reach is not passed', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const request = hold({ deadlineAt: Date.now() + 2 ** 40 });
  vi.advanceTimersByTime(1_000);
  expect(endingOf(request)).toBeUndefined();
});

test('times are never negative, whatever the clock of the sender', () => {
  const request = hold({ enqueuedAt: Date.now() + 60_000 });
  expect(request.timings()).toEqual({ queueMs: 0, firstTokenMs: null, totalMs: 0 });
});

test('only the first of several first tokens counts', () => {
  let now = 100;
  const request = hold({ enqueuedAt: 0, deadlineAt: 1_000 }, () => now);
  request.markFirstToken();
  now = 200;
  request.markFirstToken();
  expect(request.timings()).toEqual({ queueMs: 100, firstTokenMs: 100, totalMs: 200 });
});

test('what is handed out after everything was ended is ended at once', () => {
  const held = new HeldRequests();
  held.endAll(() => ({ type: 'silent' }), overloaded);
  const late = hold();
  held.add(late);
  expect(endingOf(late)).toEqual(overloaded);
});

test('a job that comes again takes the place of its earlier attempt', () => {
  const held = new HeldRequests();
  const [first, second] = [hold(), hold()];
  held.add(first);
  held.add(second);
  held.remove(first);
  expect(held.get('request-1')).toBe(second);
  held.remove(second);
  expect(held.held).toBe(0);
});
