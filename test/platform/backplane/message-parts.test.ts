import { describe, expect, test } from 'vitest';
import { MessageAssembler, splitMessage } from '../../../src/platform/backplane/message-parts.js';

/** NOTIFY refuses 8,000 bytes and more. */
const limitBytes = 8_000;

function reassemble(parts: string[]): (string | undefined)[] {
  const assembler = new MessageAssembler();
  return parts.map((part) => assembler.accept(part));
}

describe('splitting', () => {
  test.each([
    ['one byte', 'a'.repeat(30_000)],
    ['two bytes', 'é'.repeat(30_000)],
    ['three bytes', '水'.repeat(30_000)],
    ['four bytes', '😀'.repeat(30_000)],
    ['mixed', 'aé水😀'.repeat(10_000)],
    ['one byte more than a part', 'a'.repeat(7_901)],
  ])('a message of %s a character comes out whole, every part within the limit', (_title, message) => {
    const parts = splitMessage(message, 'publisher', 1_000_000);
    for (const part of parts) expect(Buffer.byteLength(part)).toBeLessThan(limitBytes);
    expect(reassemble(parts).at(-1)).toBe(message);
  });

  test('a short message is one part, also an empty one and one with the header’s signs in it', () => {
    for (const message of ['', 'p.1.0.1:x', 'short']) {
      expect(reassemble(splitMessage(message, 'p', 1))).toEqual([message]);
    }
  });
});

describe('assembling', () => {
  const long = (character: string) => character.repeat(20_000);

  test('parts of two publishers may come between each other', () => {
    const [one, two] = [splitMessage(long('1'), 'one', 1), splitMessage(long('2'), 'two', 1)];
    const mixed = one.flatMap((part, index) => [part, two[index] ?? '']);
    expect(reassemble(mixed).filter((message) => message !== undefined)).toEqual([long('1'), long('2')]);
  });

  test('a message that lost a part never comes, and the next one does', () => {
    const broken = splitMessage(long('1'), 'p', 1);
    broken.splice(1, 1);
    const messages = reassemble([...broken, ...splitMessage(long('2'), 'p', 2)]);
    expect(messages.filter((message) => message !== undefined)).toEqual([long('2')]);
  });

  test('what was unfinished before a reconnection is forgotten', () => {
    const assembler = new MessageAssembler();
    const [first = '', ...rest] = splitMessage(long('1'), 'p', 1);
    assembler.accept(first);
    assembler.clear();
    expect(rest.map((part) => assembler.accept(part))).toEqual(rest.map(() => undefined));
  });
});
