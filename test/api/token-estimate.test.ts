import { describe, expect, it } from 'vitest';
import { estimateChat, estimateRerank, estimateTokens } from '../../src/api/token-estimate.js';
import type { ChatJob, RerankJob } from '../../src/contract/job.js';

const envelope = {
  id: 'x',
  replyTo: 'api',
  model: 'm',
  enqueuedAt: 0,
  deadlineAt: 1,
  priority: 'interactive',
} as const;
const chat = (fields: Partial<ChatJob> = {}): ChatJob => ({
  ...envelope,
  kind: 'chat',
  messages: [{ role: 'user', content: 'Hello' }],
  stop: [],
  n: 1,
  ...fields,
});
const rerank = (fields: Partial<RerankJob> = {}): RerankJob => ({
  ...envelope,
  kind: 'rerank',
  query: 'why',
  documents: ['because'],
  maxChunksPerDoc: 1024,
  overlapTokens: 0,
  ...fields,
});
const room = { contextLength: 1_000 };

describe('the estimate of a text', () => {
  it.each([
    ['The quick brown fox jumps over the lazy dog.', 10, 20],
    ['人工智能是计算机科学的一个分支', 20, 45],
    ['1234567890', 10, 10],
    ['qzxvkjwpqzxvkjwpqzxvkjwpqzxvkjwp', 16, 32],
    ['😀🎉', 4, 8],
    ['', 0, 0],
  ])('of %j is near the truth and rather above it', (text, least, most) => {
    expect(estimateTokens(text)).toBeGreaterThanOrEqual(least);
    expect(estimateTokens(text)).toBeLessThanOrEqual(most);
  });

  it('never has more tokens than the text has bytes', () => {
    for (const text of [
      'a'.repeat(100),
      'é'.repeat(100),
      '\u4e00'.repeat(100),
      '😀'.repeat(100),
      '\n'.repeat(100),
    ]) {
      expect(estimateTokens(text)).toBeLessThanOrEqual(Buffer.byteLength(text));
    }
  });
});

describe('the estimate of a chat request', () => {
  it('counts the completion once for each choice', () => {
    const one = estimateChat(chat({ maxTokens: 50 }), room);
    expect(estimateChat(chat({ maxTokens: 50, n: 3 }), room)).toBe(one + 100);
  });

  it('is bounded by the context', () => {
    const messages: ChatJob['messages'] = [{ role: 'user', content: 'word '.repeat(100_000) }];
    expect(estimateChat(chat({ messages, maxTokens: 1e9 }), room)).toBe(2_000);
  });

  it('counts tools and calls', () => {
    const tools: ChatJob['tools'] = [
      { type: 'function', function: { name: 'weather', description: 'Tells the weather of a city.' } },
    ];
    expect(estimateChat(chat({ tools }), room)).toBeGreaterThan(estimateChat(chat(), room) + 20);
  });
});

describe('the estimate of a rerank request', () => {
  it('counts the query with every document', () => {
    const query = 'word '.repeat(40);
    const one = estimateRerank(rerank({ query }), room);
    expect(estimateRerank(rerank({ query, documents: ['because', 'because'] }), room)).toBe(2 * one);
  });

  it('is bounded by the chunks that are scored', () => {
    const documents = ['word '.repeat(100_000)];
    expect(estimateRerank(rerank({ documents, maxChunksPerDoc: 2 }), room)).toBeLessThan(2_100);
  });
});
