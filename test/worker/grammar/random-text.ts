import { bytesOfToken, type Grammar, type Vocabulary } from '../../../src/engine/grammar.js';
import type { GrammarCache } from '../../../src/engine/grammar-cache.js';
import { Random } from '../../../src/engine/random.js';

export interface RandomText {
  readonly text: string;
  /** Whether it came to its end, and was not cut off. */
  readonly complete: boolean;
}

/** A text that follows a grammar, of tokens drawn by chance; those that close what is open are likelier. */
export async function randomText(
  cache: GrammarCache,
  grammar: Grammar,
  { vocabulary, seed, maxTokens = 400 }: { vocabulary: Vocabulary; seed: number; maxTokens?: number },
): Promise<RandomText> {
  const random = new Random(seed, 0);
  const follower = await cache.follow(grammar);
  const bytes: number[] = [];
  try {
    for (let drawn = 0; drawn < maxTokens; drawn++) {
      const mask = await follower.allowed();
      const allowed: number[] = [];
      for (let token = 0; token < vocabulary.size; token++) {
        if ((mask[token >> 5]! >>> (token & 31)) & 1) allowed.push(token);
      }
      if (allowed.length === 0) throw new Error(`no way on after ${Buffer.from(bytes)}`);
      const closing = allowed.filter((token) => isClosing(vocabulary, token));
      const pool = closing.length > 0 && random.next() < 0.3 ? closing : allowed;
      const token = pool[Math.floor(random.next() * pool.length)]!;
      follower.accept(token);
      if (vocabulary.endTokens.includes(token)) {
        return {
          text: new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes)),
          complete: true,
        };
      }
      bytes.push(...bytesOfToken(vocabulary, token));
    }
    return { text: Buffer.from(bytes).toString('utf8'), complete: false };
  } finally {
    follower.dispose();
  }
}

function isClosing(vocabulary: Vocabulary, token: number): boolean {
  if (vocabulary.endTokens.includes(token)) return true;
  const [first] = bytesOfToken(vocabulary, token);
  return first !== undefined && '"]}'.includes(String.fromCharCode(first));
}
