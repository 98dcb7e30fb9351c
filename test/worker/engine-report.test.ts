import { expect, test, vi } from 'vitest';
import type { EngineCounters } from '../../src/engine/request.js';
import { EngineReport } from '../../src/worker/engine-report.js';
import { deferred } from '../support/deferred.js';
import { engineCounters } from './support/engine-counters.js';

/** An engine whose answers are the test's, and time that passes only when told to. */
function openReport() {
  const answers: ReturnType<typeof deferred<EngineCounters>>[] = [];
  const counters = vi.fn(() => {
    const answer = deferred<EngineCounters>();
    answers.push(answer);
    return answer.promise;
  });
  const time = { now: 0 };
  return { report: new EngineReport({ counters }, () => time.now), counters, answers, time };
}

const turn = () => new Promise(setImmediate);

test('there is nothing to say until the engine has answered', async () => {
  const { report, answers } = openReport();
  expect(report.latest).toBeUndefined();
  answers[0]!.resolve(engineCounters({ steps: 1 }));
  await turn();
  expect(report.latest).toEqual(engineCounters({ steps: 1 }));
});

test('the engine is asked once a second, however often somebody looks', async () => {
  const { report, counters, answers, time } = openReport();
  for (time.now = 0; time.now < 1_000; time.now += 100) {
    void report.latest;
    answers.at(-1)!.resolve(engineCounters());
    await turn();
    if (time.now < 900) expect(counters).toHaveBeenCalledTimes(1);
  }
  expect(counters).toHaveBeenCalledTimes(2);
});

test('an engine in a long step is not asked again, and what it said before stands', async () => {
  const { report, counters, answers, time } = openReport();
  void report.latest;
  answers[0]!.resolve(engineCounters({ steps: 1 }));
  await turn();
  for (const now of [1_000, 2_000, 60_000]) {
    time.now = now;
    expect(report.latest).toMatchObject({ steps: 1 });
  }
  expect(counters).toHaveBeenCalledTimes(2);
  answers[1]!.resolve(engineCounters({ steps: 2 }));
  await turn();
  expect(report.latest).toMatchObject({ steps: 2 });
});

test('what an engine said last stands when it is gone', async () => {
  const { report, counters, answers, time } = openReport();
  void report.latest;
  answers[0]!.resolve(engineCounters({ steps: 1 }));
  await turn();
  counters.mockRejectedValueOnce(new Error('The engine is closed'));
  time.now = 1_000;
  void report.latest;
  await turn();
  expect(counters).toHaveBeenCalledTimes(2);
  expect(report.latest).toMatchObject({ steps: 1 });
});
