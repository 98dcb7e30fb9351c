import { beforeEach, describe, expect, it } from 'vitest';
import { ModelWorkers, type Traffic } from '../../src/cli/model-workers.js';
import type { WorkerPresence } from '../../src/platform/presence.js';
import { catalogue, logger } from '../platform/support/administration.js';
import { jobFor } from '../support/jobs.js';
import { MemoryBackplane } from '../support/memory-backplane.js';

const [chat, rerank] = catalogue.models;

let events: string[];
let failure: Error | undefined;
let now: number;
let held: number;
let backplane: MemoryBackplane;
let workers: ModelWorkers;
let traffic: Traffic;

beforeEach(() => {
  events = [];
  failure = undefined;
  now = 0;
  held = 0;
  backplane = new MemoryBackplane();
  workers = new ModelWorkers({
    supervisor: {
      start: async ({ name }) => {
        events.push(`start ${name}`);
        if (failure !== undefined) throw failure;
      },
      retire: async (name) => void events.push(`retire ${name}`),
    },
    specificationOf: (name) => ({ name, entry: '', args: [], env: {} }),
    logger,
    now: () => now,
  });
  const worker: WorkerPresence = { role: 'worker', id: 'w', leaving: false, model: '', held: 0, running: 0 };
  traffic = { backplane, presence: { workersOf: () => [{ ...worker, held }] } };
});

/** Says what is served at a time, in seconds. */
async function at(seconds: number, served: typeof catalogue.models): Promise<void> {
  now = seconds * 1_000;
  await workers.follow(served, traffic);
}

describe('the workers of the models', () => {
  it('are started once for each model that is served', async () => {
    await workers.start([chat!]);
    await at(1, [chat!, rerank!]);
    await at(2, [chat!, rerank!]);
    expect(events).toEqual(['start owner/chat', 'start rerank']);
  });

  it('leave when their model is no longer served and nobody has waited for it for a while', async () => {
    await workers.start([chat!, rerank!]);
    await at(0, [chat!]);
    await at(2, [chat!]);
    expect(events).not.toContain('retire rerank');
    await at(3, [chat!]);
    expect(events).toContain('retire rerank');
    expect(events).not.toContain('retire owner/chat');
  });

  it('stay while requests run or wait', async () => {
    await workers.start([rerank!]);
    held = 1;
    for (const second of [0, 2, 4, 6]) await at(second, []);
    held = 0;
    await backplane.queue('rerank').add(jobFor('rerank'));
    for (const second of [8, 10, 12]) await at(second, []);
    expect(events).toEqual(['start rerank']);
    backplane.queue('rerank').waiting.splice(0);
    for (const second of [14, 16]) await at(second, []);
    expect(events).toEqual(['start rerank', 'retire rerank']);
  });

  it('stay when their model is served again in time', async () => {
    await workers.start([rerank!]);
    await at(0, []);
    await at(2, [rerank!]);
    await at(4, []);
    expect(events).toEqual(['start rerank']);
  });

  it('are started again after they have left', async () => {
    await workers.start([rerank!]);
    await at(0, []);
    await at(3, []);
    await at(4, [rerank!]);
    expect(events).toEqual(['start rerank', 'retire rerank', 'start rerank']);
  });

  it('that cannot be started are tried again after a while', async () => {
    failure = new Error('no such file');
    await at(0, [rerank!]);
    await at(29, [rerank!]);
    expect(events).toEqual(['start rerank']);
    await at(31, [rerank!]);
    expect(events).toEqual(['start rerank', 'start rerank']);
  });

  it('that cannot be started at the start fail the start', async () => {
    failure = new Error('no such file');
    await expect(workers.start([rerank!])).rejects.toThrow('no such file');
  });
});
