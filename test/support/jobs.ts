import { randomUUID } from 'node:crypto';
import type { RerankJob } from '../../src/contract/job.js';

/** The smallest job there is, for a model; `fields` differ from it. */
export function jobFor(model: string, fields: Partial<RerankJob> = {}): RerankJob {
  return {
    kind: 'rerank',
    id: randomUUID(),
    replyTo: 'nobody',
    model,
    enqueuedAt: Date.now(),
    deadlineAt: Date.now() + 60_000,
    priority: 'interactive',
    query: 'q',
    documents: ['d'],
    maxChunksPerDoc: 1,
    overlapTokens: 0,
    ...fields,
  };
}
