import { describe, expect, it } from 'vitest';
import { QueueDepth } from '../../src/api/queue-depth.js';
import { jobFor } from '../support/jobs.js';
import { MemoryBackplane } from '../support/memory-backplane.js';

function countedQueue() {
  const backplane = new MemoryBackplane();
  const queue = backplane.queue('m');
  const calls = { depth: 0 };
  const original = queue.depth.bind(queue);
  queue.depth = () => {
    calls.depth++;
    return original();
  };
  return { backplane, queue, calls, depth: new QueueDepth({ backplane, model: 'm' }) };
}

describe('the depth of a queue', () => {
  it('is asked for once by many requests', async () => {
    const { depth, calls } = countedQueue();
    await Promise.all(Array.from({ length: 50 }, () => depth.reaches(10)));
    expect(calls.depth).toBe(1);
  });

  it('includes what this process has added since', async () => {
    const { depth, queue } = countedQueue();
    expect(await depth.reaches(2)).toBe(false);
    for (let i = 0; i < 2; i++) {
      depth.add();
      await queue.add(jobFor('m'));
    }
    expect(await depth.reaches(2)).toBe(true);
  });

  it('is counted again before anyone is refused', async () => {
    const { depth } = countedQueue();
    await depth.reaches(1);
    // Enqueued, and taken by a worker already.
    depth.add();
    expect(await depth.reaches(1)).toBe(false);
  });
});
