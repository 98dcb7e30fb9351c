import type { EngineCounters } from '../../../src/engine/request.js';

/** An engine that has done something, and holds what is said. */
export function engineCounters(fields: Partial<EngineCounters> = {}): EngineCounters {
  return {
    running: 1,
    waiting: 2,
    slots: 32,
    kvBytesUsed: 1_000,
    kvBytesBudget: 9_000,
    kvPositions: 10,
    prefixBytesUsed: 500,
    steps: 7,
    prefillTokens: 70,
    cachedTokens: 128,
    decodeTokens: 30,
    draftTokens: 12,
    acceptedDraftTokens: 8,
    encodedTokens: 0,
    cancelled: 3,
    ...fields,
  };
}
