import { expect, it } from 'vitest';
import { describeBackplanes } from '../../support/backplanes.js';
import { deferred } from '../../support/deferred.js';

describeBackplanes('a queue of tasks', (kit) => {
  it('has each task done once, also one that is added again while it waits', async () => {
    const backplane = await kit.open();
    await backplane.tasks('once').add('task-a');
    await backplane.tasks('once').add('task-a');
    await backplane.tasks('once').add('task-b');
    const done: string[] = [];
    const ended = deferred();
    await backplane.work(
      'once',
      async (id) => {
        done.push(id);
        if (id === 'task-b') ended.resolve();
        return undefined;
      },
      { concurrency: 1 },
    );

    await ended.promise;

    expect(done).toEqual(['task-a', 'task-b']);
  });

  it('runs a task again when its handler says, and no more once it is over', async () => {
    const backplane = await kit.open();
    const runs: string[] = [];
    const ended = deferred();
    await backplane.work(
      'again',
      async (id) => {
        runs.push(id);
        if (id === 'last') ended.resolve();
        if (runs.length < 3) return { retryMs: 20 };
        if (id === 'twice-again') await backplane.tasks('again').add('last');
        return undefined;
      },
      { concurrency: 1 },
    );

    await backplane.tasks('again').add('twice-again');
    await ended.promise;

    expect(runs).toEqual(['twice-again', 'twice-again', 'twice-again', 'last']);
  });

  it('runs a task again after its handler threw', async () => {
    const backplane = await kit.open();
    let runs = 0;
    const ended = deferred();
    await backplane.work(
      'thrown',
      async () => {
        runs += 1;
        if (runs === 1) throw new Error('the database is away');
        ended.resolve();
        return undefined;
      },
      { concurrency: 1 },
    );

    await backplane.tasks('thrown').add('a');

    await ended.promise;
    expect(runs).toBe(2);
  });

  it('keeps a task for whoever comes later, and may have it again once it is over', async () => {
    const first = await kit.open();
    await first.tasks('kept').add('a');
    await first.close();
    const second = await kit.open();
    const done: string[] = [];
    const added = deferred();
    await second.work(
      'kept',
      async (id) => {
        done.push(id);
        // Held, so that nothing that was added late makes a third run before the test looks.
        if (done.length === 2) await added.promise;
        return undefined;
      },
      { concurrency: 1 },
    );

    // Until the end of the task has reached the store, adding it once more changes nothing.
    while (done.length < 2) await second.tasks('kept').add('a');
    added.resolve();

    expect(done).toEqual(['a', 'a']);
  });
});
