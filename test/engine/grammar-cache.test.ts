import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Grammar, Vocabulary } from '../../src/engine/grammar.js';
import { GrammarCache } from '../../src/engine/grammar-cache.js';

/** A token for each byte, and one that ends a text. */
const vocabulary: Vocabulary = {
  bytes: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  ends: Int32Array.from({ length: 257 }, (_, token) => Math.min(token + 1, 256)),
  size: 257,
  endTokens: [256],
};

function grammar(text: string): Grammar {
  return { ebnf: `root ::= "${text}" [a-z]* ("," [0-9]+)*\n`, strings: [] };
}

/** Follows a grammar for some tokens. */
async function follow(cache: GrammarCache, text: string): Promise<void> {
  const follower = await cache.follow(grammar(text));
  for (const byte of Buffer.from(`${text}abc,1`)) {
    await follower.allowed();
    follower.accept(byte);
  }
  follower.dispose();
}

interface Memory {
  readonly buffer: ArrayBuffer;
}

/** What this needs of WebAssembly: the types of Node.js leave it out. */
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: {
    readonly Memory: new () => Memory;
    instantiate(...args: readonly unknown[]): Promise<{ instance: { exports: Record<string, unknown> } }>;
  };
};

/** Memories of the WebAssembly modules that are started while `run` runs. */
async function memoriesOf(run: () => Promise<void>): Promise<Memory[]> {
  const { instantiate } = WebAssembly;
  const memories: Memory[] = [];
  vi.spyOn(WebAssembly, 'instantiate').mockImplementation(async (...args) => {
    const result = await instantiate(...args);
    const exported = Object.values(result.instance.exports);
    memories.push(...exported.filter((value) => value instanceof WebAssembly.Memory));
    return result;
  });
  await run();
  return memories;
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('GrammarCache', () => {
  it('keeps the grammars used last, up to its limit', async () => {
    const cache = new GrammarCache(vocabulary, { maxGrammars: 3 });
    for (const text of ['a', 'b', 'c', 'd', 'e']) await follow(cache, text);
    expect(cache.size).toBe(3);
  });

  it('gives up the grammar that was not used for longest', async () => {
    const cache = new GrammarCache(vocabulary, { maxGrammars: 2 });
    const [a, b, c] = ['a', 'b', 'c'];
    for (const text of [a, b, a, c]) await follow(cache, text!);
    expect([a, b, c].map((text) => cache.has(grammar(text!)))).toEqual([true, false, true]);
  });

  it('gives up grammars that are too long together', async () => {
    const cache = new GrammarCache(vocabulary, { maxCharacters: 200 });
    for (let index = 0; index < 20; index++) await follow(cache, `text${index}`);
    expect(cache.size).toBeGreaterThan(0);
    expect(cache.size).toBeLessThan(7);
  });

  it('lets a text be followed to its end when its grammar is given up', async () => {
    const cache = new GrammarCache(vocabulary, { maxGrammars: 1 });
    const follower = await cache.follow(grammar('first'));
    for (let index = 0; index < 5; index++) await follow(cache, `other${index}`);
    for (const token of [...Buffer.from('firstx,12'), 256]) {
      const mask = await follower.allowed();
      expect((mask[token >> 5]! >>> (token & 31)) & 1).toBe(1);
      follower.accept(token);
    }
    follower.dispose();
  });

  it('goes on with a fresh compiler after a grammar that cannot be compiled', async () => {
    const cache = new GrammarCache(vocabulary);
    vi.spyOn(console, 'error').mockReturnValue();
    await expect(cache.follow({ ebnf: 'root ::= "a" missing\n', strings: [] })).rejects.toThrow('compiled');
    await follow(cache, 'a');
    expect(cache.size).toBe(1);
  });

  it('does not grow with the grammars that it has seen', async () => {
    const cache = new GrammarCache(vocabulary, { maxGrammars: 8 });
    const [memory, ...others] = await memoriesOf(() => follow(cache, 'a'));
    expect(others).toEqual([]);
    // Of so many places that a few hundred of them would not fit into the memory that there is at first.
    const large = (index: number) => `${index}${'x'.repeat(index % 7)}" ${'[a-z]? '.repeat(150)} "`;
    const use = async (index: number) => (await cache.follow(grammar(large(index)))).dispose();
    for (let index = 0; index < 20; index++) await use(index);
    const before = memory!.buffer.byteLength;
    for (let index = 20; index < 420; index++) await use(index);
    expect(memory!.buffer.byteLength).toBe(before);
    expect(cache.size).toBe(8);
  });
});
