import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SoakReport } from '../../bench/soak/run-soak.js';
import type { EngineSettings } from '../../src/engine/engine.js';
import { bytesPerPosition } from '../../src/engine/kv-cache.js';
import { forkTypeScript } from '../support/typescript-child.js';
import { type CompiledFixture, compileFixture } from './support/compiled-fixture.js';

/**
 * A process this small is mostly Node.js itself, which has compiled its code and sized its heaps only after some
 * seconds: a thousand requests to so small a model.
 */
const warmUp = 1_000;
const requests = warmUp + 1_800;
/** Garbage, young and old, is collected before it is as large as all that is to be measured. */
const nodeOptions = ['--max-semi-space-size=1', '--max-old-space-size=32'];

let fixture: CompiledFixture;
let report: SoakReport;
let settings: EngineSettings;

beforeAll(async () => {
  fixture = await compileFixture('decoder/llama-tied', 'int8');
  const { manifest } = fixture;
  if (manifest.kind !== 'decoder') throw new Error('The fixture is a decoder. This is a bug.');
  // Less than the slots could fill, so that requests wait for memory too.
  const kvBytes = 2_048 * bytesPerPosition(manifest);
  settings = {
    folder: fixture.folder,
    maxSequences: 8,
    contextLength: manifest.contextLength,
    kvBytes,
    prefixBytes: kvBytes / 2,
    maxBatchTokens: 256,
    chunkTokens: 32,
    threads: 1,
  };
  const child = forkTypeScript(
    new URL('./support/soak-program.ts', import.meta.url),
    [JSON.stringify({ settings, seed: 1, requests, warmUp })],
    nodeOptions,
  );
  report = (await child.next()) as SoakReport;
  expect(await child.ended).toBe(0);
});

afterAll(() => fixture?.remove());

test('every request ends, in one of all the ways there are', () => {
  const { finished, cancelled, choicesCancelled, failures } = report.outcome;
  expect(failures).toEqual([]);
  expect(finished + cancelled.waiting + cancelled.prefill + cancelled.decode).toBe(requests);
  for (const count of [...Object.values(cancelled), choicesCancelled]) expect(count).toBeGreaterThan(0);
});

test('no slot and no byte of the cache is held when they have ended', () => {
  expect(report.counters).toMatchObject({ running: 0, waiting: 0, kvBytesUsed: 0, kvPositions: 0, slots: 8 });
});

test('beginnings of prompts are used again, and take no more than they may', () => {
  expect(report.counters.cachedTokens).toBeGreaterThan(0);
  expect(report.counters.prefixBytesUsed).toBeLessThanOrEqual(settings.prefixBytes);
});

test('memory stays as it was after the warm-up', () => {
  expect(report.resident.end).toBeLessThan(1.1 * report.resident.warm);
});

test('nothing else is wrong', () => {
  expect(report.problems).toEqual([]);
});
