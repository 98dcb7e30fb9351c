import type { Grammar, Vocabulary } from '../../../src/engine/grammar.js';
import { GrammarCache } from '../../../src/engine/grammar-cache.js';

const end = 256;

/** A token for each byte, and one that ends a text. */
const vocabulary: Vocabulary = {
  bytes: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  ends: Int32Array.from({ length: 257 }, (_, token) => Math.min(token + 1, 256)),
  size: 257,
  endTokens: [end],
};
const cache = new GrammarCache(vocabulary, { maxGrammars: 4 });

/** Whether a grammar takes a whole text, byte by byte. */
export async function takes(grammar: Grammar, text: string): Promise<boolean> {
  const follower = await cache.follow(grammar);
  try {
    for (const byte of [...Buffer.from(text), end]) {
      const mask = await follower.allowed();
      if (((mask[byte >> 5]! >>> (byte & 31)) & 1) === 0) return false;
      follower.accept(byte);
    }
    return true;
  } finally {
    follower.dispose();
  }
}
