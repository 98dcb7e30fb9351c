import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { catalogueChannel } from '../../../src/contract/names.js';
import { LiveCatalogue } from '../../../src/platform/model-registry/live-catalogue.js';
import { initialState, type ModelState } from '../../../src/platform/model-registry/model-state.js';
import { deferred } from '../../support/deferred.js';
import { MemoryBackplane } from '../../support/memory-backplane.js';
import { catalogue, logger } from '../support/administration.js';

const offline: ModelState = { ...initialState, state: 'offline' };

let states: Map<string, ModelState>;
let loads: (() => Promise<void>)[];
let tick: () => void;
let backplane: MemoryBackplane;
let live: LiveCatalogue;

beforeEach(async () => {
  states = new Map();
  loads = [];
  backplane = new MemoryBackplane();
  live = await LiveCatalogue.open({
    catalogue,
    store: {
      load: async () => {
        const read = new Map(states);
        await loads.shift()?.();
        return read;
      },
    },
    channel: backplane.channel,
    logger,
    every: (_ms, call) => {
      tick = call;
      return () => {};
    },
  });
});
afterEach(() => live.close());

const servedIds = () => live.served().map(({ id }) => id);
const refreshed = () => new Promise<void>((resolve) => live.onRefresh(resolve));

describe('the live catalogue', () => {
  it('serves every model of the file while nobody decided otherwise', () => {
    expect(servedIds()).toEqual(['owner/chat', 'rerank']);
  });

  it('follows a change that it is told of', async () => {
    states.set('rerank', offline);
    const seen = refreshed();
    await backplane.channel.publish(catalogueChannel, 'changed');
    await seen;
    expect(servedIds()).toEqual(['owner/chat']);
  });

  it('finds a change that it was not told of at the next poll', async () => {
    states.set('rerank', offline);
    const seen = refreshed();
    tick();
    await seen;
    expect(servedIds()).toEqual(['owner/chat']);
  });

  it('reads again when a change comes while it reads', async () => {
    const [begun, answer] = [deferred(), deferred()];
    loads.push(async () => {
      begun.resolve();
      await answer.promise;
    });
    const first = live.refresh();
    await begun.promise;
    states.set('rerank', offline);
    const second = live.refresh();
    answer.resolve();
    await Promise.all([first, second]);
    expect(servedIds()).toEqual(['owner/chat']);
  });

  it('keeps what it knows while the states cannot be read', async () => {
    states.set('rerank', offline);
    await live.refresh();
    loads.push(async () => {
      throw new Error('the database is away');
    });
    await live.refresh();
    expect(servedIds()).toEqual(['owner/chat']);
  });

  it('ignores states of models that the file no longer lists', async () => {
    states.set('gone', offline);
    await live.refresh();
    expect(live.models.map(({ entry }) => entry.id)).toEqual(['owner/chat', 'rerank']);
  });

  it('keeps a deprecated model until its sunset has come', async () => {
    const sunsetAt = new Date('2030-01-01T00:00:00Z');
    states.set('rerank', { ...initialState, state: 'deprecated', deprecatedAt: sunsetAt, sunsetAt });
    await live.refresh();
    expect(live.served(new Date(sunsetAt.getTime() - 1)).map(({ id }) => id)).toContain('rerank');
    expect(live.served(sunsetAt).map(({ id }) => id)).not.toContain('rerank');
  });
});
