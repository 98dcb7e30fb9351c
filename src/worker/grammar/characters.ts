/** A set of Unicode code points as ranges, both ends included, in order and apart. */
export type Characters = ReadonlyArray<readonly [first: number, last: number]>;

/** Every code point that a well-formed string can hold. */
export const anyCharacter: Characters = [
  [0, 0xd7ff],
  [0xe000, 0x10ffff],
];

/** The union of ranges in any order. */
export function unite(ranges: ReadonlyArray<readonly [number, number]>): Characters {
  const united: [number, number][] = [];
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const before = united.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else united.push([first, last]);
  }
  return united;
}

export function intersect(one: Characters, other: Characters): Characters {
  return one.flatMap(([first, last]) =>
    other
      .map(([from, to]) => [Math.max(first, from), Math.min(last, to)] as const)
      .filter(([from, to]) => from <= to),
  );
}

/** The characters that are not in the set. */
export function complement(characters: Characters): Characters {
  const gaps: [number, number][] = [];
  let next = 0;
  for (const [first, last] of characters) {
    if (first > next) gaps.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= 0x10ffff) gaps.push([next, 0x10ffff]);
  return intersect(gaps, anyCharacter);
}

/**
 * The characters as they stand in a JSON string, as sequences of ranges of bytes: UTF-8, exactly, with nothing
 * overlong and no surrogates; and JSON's escapes where it wants them.
 */
export function characterBytes(characters: Characters): Characters[] {
  const sequences: Characters[] = intersect(characters, plainCharacters).map((range) => [range]);
  for (const [first, last] of intersect(characters, escaped)) {
    for (let code = first; code <= last; code++) {
      const text = JSON.stringify(String.fromCharCode(code)).slice(1, -1);
      sequences.push(Array.from(Buffer.from(text), (byte) => [byte, byte] as const));
    }
  }
  for (const [first, last] of intersect(characters, [[0x80, 0x10ffff]])) {
    sequences.push(...utf8Sequences(first, last));
  }
  return sequences;
}

/** What JSON writes as it is, of ASCII. */
export const plainCharacters: Characters = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0x7f],
];

/** What JSON writes with a backslash. */
const escaped: Characters = [
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
];

/** A text as it is, in EBNF. */
export function literalToEbnf(text: string): string {
  const escapedText = text.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n');
  return `"${escapedText}"`;
}

/** One of these bytes, in EBNF: xgrammar compares the classes of a grammar with bytes, not with characters. */
export function byteClass(ranges: Characters): string {
  const parts = ranges.map(([first, last]) =>
    first === last ? byteOf(first) : `${byteOf(first)}-${byteOf(last)}`,
  );
  // A class of one byte would be read as a character, and spelled in UTF-8 again.
  const isLone = ranges.length === 1 && ranges[0]![0] === ranges[0]![1] && ranges[0]![0] >= 0x80;
  return `[${parts.join('')}${isLone ? parts.join('') : ''}]`;
}

function byteOf(byte: number): string {
  const isPlain = /[A-Za-z0-9]/.test(String.fromCharCode(byte)) && byte < 0x80;
  return isPlain ? String.fromCharCode(byte) : `\\u${byte.toString(16).padStart(4, '0')}`;
}

/** The code points of a range as sequences of byte ranges (as in the RE2 and Rust regex engines). */
function utf8Sequences(first: number, last: number): Characters[] {
  for (const limit of [0x7ff, 0xffff]) {
    if (first <= limit && last > limit) {
      return [...utf8Sequences(first, limit), ...utf8Sequences(limit + 1, last)];
    }
  }
  const length = first > 0xffff ? 4 : first > 0x7ff ? 3 : 2;
  for (let tail = 1; tail < length; tail++) {
    const low = 2 ** (6 * tail) - 1;
    if (Math.floor(first / (low + 1)) === Math.floor(last / (low + 1))) continue;
    if ((first & low) !== 0) {
      return [...utf8Sequences(first, first | low), ...utf8Sequences((first | low) + 1, last)];
    }
    if ((last & low) !== low) {
      return [...utf8Sequences(first, (last & ~low) - 1), ...utf8Sequences(last & ~low, last)];
    }
  }
  const from = Buffer.from(String.fromCodePoint(first));
  const to = Buffer.from(String.fromCodePoint(last));
  return [Array.from(from, (byte, index) => [byte, to[index]!] as const)];
}
