import { describe, expect, it } from 'vitest';
import { PrefixCache } from '../../src/engine/prefix-cache.js';
import { PromptCuts } from '../../src/engine/prompt-cuts.js';

const cuts = new PromptCuts(2, 1);
const open = (maxBytes = 1000) => new PrefixCache({ cuts, chunkBytes: 10, maxBytes });
const prompt = (...tokens: number[]) => Int32Array.from(tokens);
const never = () => {
  throw new Error('It was written for nothing.');
};

let stored = 0;

/** Stores all whole chunks of a prompt, each with a number of its own; returns those. */
function store(cache: PrefixCache, scope: string, tokens: Int32Array): number[] {
  return Array.from({ length: Math.floor(tokens.length / 2) }, (_, index) => {
    stored = (stored + 1) % 256;
    cache.add(scope, tokens, index, (bytes) => {
      expect(bytes).toHaveLength(10);
      bytes.fill(stored);
    });
    return stored;
  });
}

/** The numbers of the chunks that are found. */
function find(cache: PrefixCache, scope: string, tokens: Int32Array): number[] {
  return cache.find(scope, tokens).map((bytes) => {
    expect(new Set(bytes).size).toBe(1);
    return bytes[0]!;
  });
}

describe('PrefixCache', () => {
  it('finds what prompts have in common, in whole chunks', () => {
    const cache = open();
    const [first, second] = store(cache, 'a', prompt(1, 2, 3, 4, 5, 6));
    expect(find(cache, 'a', prompt(1, 2, 3, 4, 9, 9, 9))).toEqual([first, second]);
    expect(find(cache, 'a', prompt(1, 2, 3, 9, 9))).toEqual([first]);
    expect(find(cache, 'a', prompt(1, 9, 3, 4))).toEqual([]);
  });

  it('leaves the last token of a prompt to be read', () => {
    const cache = open();
    store(cache, 'a', prompt(1, 2, 3, 4));
    expect(find(cache, 'a', prompt(1, 2, 3, 4))).toHaveLength(1);
    expect(find(cache, 'a', prompt(1, 2))).toHaveLength(0);
  });

  it('does not take a chunk behind other tokens for the same', () => {
    const cache = open();
    store(cache, 'a', prompt(1, 2, 3, 4));
    expect(find(cache, 'a', prompt(3, 4, 0))).toEqual([]);
    expect(find(cache, 'a', prompt(1, 23, 4, 0, 0))).toEqual([]);
  });

  it('shares nothing between scopes', () => {
    const cache = open();
    store(cache, 'a', prompt(1, 2, 3, 4));
    expect(find(cache, 'b', prompt(1, 2, 3, 4, 5))).toEqual([]);
  });

  it('reads what is stored already no second time', () => {
    const cache = open();
    store(cache, 'a', prompt(1, 2));
    cache.add('a', prompt(1, 2, 7), 0, never);
    expect(cache.bytesUsed).toBe(10);
  });

  it('drops what was used least recently, later chunks before those they stand on', () => {
    const cache = open(40);
    store(cache, 'a', prompt(1, 2, 3, 4));
    store(cache, 'a', prompt(5, 6, 7, 8));
    expect(find(cache, 'a', prompt(1, 2, 3, 4, 0))).toHaveLength(2);
    store(cache, 'a', prompt(9, 9));
    expect(cache.bytesUsed).toBe(40);
    expect(find(cache, 'a', prompt(5, 6, 7, 8, 0))).toHaveLength(1);
    expect(find(cache, 'a', prompt(1, 2, 3, 4, 0))).toHaveLength(2);
    expect(find(cache, 'a', prompt(9, 9, 0))).toHaveLength(1);
  });

  it('has every chunk in a place of its own, however often places are used again', () => {
    const cache = open(45);
    const kept = new Map<number, Int32Array>();
    for (let seed = 0; seed < 40; seed++) {
      const tokens = prompt(seed % 7, seed, 1, 2, 3, 4);
      for (const number of store(cache, 'a', tokens)) kept.set(number, tokens);
      expect(cache.bytesUsed).toBe(Math.min(40, 30 + 30 * seed));
      const found = find(cache, 'a', Int32Array.of(...tokens, 0));
      expect(found).toHaveLength(3);
      for (const number of found) expect(kept.get(number)).toBe(tokens);
    }
  });

  it('drops nothing of a prompt for what comes behind it', () => {
    const cache = open(20);
    const [first, second] = store(cache, 'a', prompt(1, 2, 3, 4, 5, 6));
    expect(find(cache, 'a', prompt(1, 2, 3, 4, 5, 6, 0))).toEqual([first, second]);
  });

  it('stores no chunk whose predecessor is gone', () => {
    const cache = open();
    cache.add('a', prompt(1, 2, 3, 4), 1, never);
    expect(cache.bytesUsed).toBe(0);
  });

  it('stores nothing that is larger than all it may hold', () => {
    const cache = open(9);
    store(cache, 'a', prompt(1, 2, 3, 4));
    expect(cache.bytesUsed).toBe(0);
    expect(find(cache, 'a', prompt(1, 2, 3))).toEqual([]);
  });
});
