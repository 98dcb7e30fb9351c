import { describe, expect, it } from 'vitest';
import { PrefixCache } from '../../src/engine/prefix-cache.js';
import { PromptCuts } from '../../src/engine/prompt-cuts.js';

const cuts = new PromptCuts(2, 1);
const chunk = (size = 10) => new ArrayBuffer(size);
const prompt = (...tokens: number[]) => Int32Array.from(tokens);
const never = (): ArrayBuffer => {
  throw new Error('It was read for nothing.');
};

/** Stores all whole chunks of a prompt; returns what was stored. */
function store(cache: PrefixCache, scope: string, tokens: Int32Array): ArrayBuffer[] {
  const chunks = Array.from({ length: Math.floor(tokens.length / 2) }, () => chunk());
  for (const [index, bytes] of chunks.entries()) cache.add(scope, tokens, index, () => bytes);
  return chunks;
}

describe('PrefixCache', () => {
  it('finds what prompts have in common, in whole chunks', () => {
    const cache = new PrefixCache({ cuts, maxBytes: 1000 });
    const [first, second] = store(cache, 'a', prompt(1, 2, 3, 4, 5, 6));
    expect(cache.find('a', prompt(1, 2, 3, 4, 9, 9, 9))).toEqual([first, second]);
    expect(cache.find('a', prompt(1, 2, 3, 9, 9))).toEqual([first]);
    expect(cache.find('a', prompt(1, 9, 3, 4))).toEqual([]);
  });

  it('leaves the last token of a prompt to be read', () => {
    const cache = new PrefixCache({ cuts, maxBytes: 1000 });
    store(cache, 'a', prompt(1, 2, 3, 4));
    expect(cache.find('a', prompt(1, 2, 3, 4))).toHaveLength(1);
    expect(cache.find('a', prompt(1, 2))).toHaveLength(0);
  });

  it('does not take a chunk behind other tokens for the same', () => {
    const cache = new PrefixCache({ cuts, maxBytes: 1000 });
    store(cache, 'a', prompt(1, 2, 3, 4));
    expect(cache.find('a', prompt(3, 4, 0))).toEqual([]);
    expect(cache.find('a', prompt(1, 23, 4, 0, 0))).toEqual([]);
  });

  it('shares nothing between scopes', () => {
    const cache = new PrefixCache({ cuts, maxBytes: 1000 });
    store(cache, 'a', prompt(1, 2, 3, 4));
    expect(cache.find('b', prompt(1, 2, 3, 4, 5))).toEqual([]);
  });

  it('reads what is stored already no second time', () => {
    const cache = new PrefixCache({ cuts, maxBytes: 1000 });
    store(cache, 'a', prompt(1, 2));
    cache.add('a', prompt(1, 2, 7), 0, never);
    expect(cache.bytesUsed).toBe(10);
  });

  it('drops what was used least recently, later chunks before those they stand on', () => {
    const cache = new PrefixCache({ cuts, maxBytes: 40 });
    store(cache, 'a', prompt(1, 2, 3, 4));
    store(cache, 'a', prompt(5, 6, 7, 8));
    expect(cache.find('a', prompt(1, 2, 3, 4, 0))).toHaveLength(2);
    store(cache, 'a', prompt(9, 9));
    expect(cache.bytesUsed).toBe(40);
    expect(cache.find('a', prompt(5, 6, 7, 8, 0))).toHaveLength(1);
    expect(cache.find('a', prompt(1, 2, 3, 4, 0))).toHaveLength(2);
    expect(cache.find('a', prompt(9, 9, 0))).toHaveLength(1);
  });

  it('stores no chunk whose predecessor is gone', () => {
    const cache = new PrefixCache({ cuts, maxBytes: 1000 });
    cache.add('a', prompt(1, 2, 3, 4), 1, never);
    expect(cache.bytesUsed).toBe(0);
  });

  it('stores nothing that is larger than all it may hold', () => {
    const cache = new PrefixCache({ cuts, maxBytes: 9 });
    store(cache, 'a', prompt(1, 2, 3, 4));
    expect(cache.bytesUsed).toBe(0);
    expect(cache.find('a', prompt(1, 2, 3))).toEqual([]);
  });
});
