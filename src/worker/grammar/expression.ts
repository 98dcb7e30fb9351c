import { anyCharacter, type Characters } from './characters.js';

/** A regular expression over characters. */
export type Expression =
  | { readonly type: 'characters'; readonly characters: Characters }
  | { readonly type: 'sequence'; readonly items: readonly Expression[] }
  | { readonly type: 'choice'; readonly items: readonly Expression[] }
  | { readonly type: 'repeat'; readonly item: Expression; readonly min: number; readonly max: number };

export const anyText: Expression = repeat({ type: 'characters', characters: anyCharacter }, 0);
export const nothing: Expression = sequence([]);

export function sequence(items: readonly Expression[]): Expression {
  return items.length === 1 ? items[0]! : { type: 'sequence', items };
}

export function choice(items: readonly Expression[]): Expression {
  return items.length === 1 ? items[0]! : { type: 'choice', items };
}

export function repeat(item: Expression, min: number, max = Number.POSITIVE_INFINITY): Expression {
  return min === 1 && max === 1 ? item : { type: 'repeat', item, min, max };
}

/** One character of `first`..`last`. */
export function between(first: string, last: string): Expression {
  return { type: 'characters', characters: [[first.codePointAt(0)!, last.codePointAt(0)!]] };
}

export function literal(text: string): Expression {
  return sequence(Array.from(text, (character) => between(character, character)));
}

export function optional(item: Expression): Expression {
  return repeat(item, 0, 1);
}

/** How many characters the shortest and the longest text have. */
export function lengthsOf(expression: Expression): { min: number; max: number } {
  switch (expression.type) {
    case 'characters':
      return { min: 1, max: 1 };
    case 'sequence': {
      const lengths = expression.items.map(lengthsOf);
      return {
        min: lengths.reduce((sum, { min }) => sum + min, 0),
        max: lengths.reduce((sum, { max }) => sum + max, 0),
      };
    }
    case 'choice': {
      const lengths = expression.items.map(lengthsOf);
      return {
        min: Math.min(...lengths.map(({ min }) => min)),
        max: Math.max(...lengths.map(({ max }) => max)),
      };
    }
    case 'repeat': {
      const { min, max } = lengthsOf(expression.item);
      return { min: min * expression.min, max: max === 0 || expression.max === 0 ? 0 : max * expression.max };
    }
    default:
      return expression satisfies never;
  }
}

/**
 * Texts of the expression with `min` to `max` characters; not all of them where parts share the room. Undefined when
 * none were found.
 */
export function withLength(expression: Expression, min: number, max: number): Expression | undefined {
  const own = lengthsOf(expression);
  if (own.min >= min && own.max <= max) return expression;
  if (own.min > max || own.max < min) return undefined;
  switch (expression.type) {
    case 'characters':
      return expression;
    case 'choice': {
      const items = expression.items.flatMap((item) => withLength(item, min, max) ?? []);
      return items.length > 0 ? choice(items) : undefined;
    }
    case 'repeat':
      return repeatWithLength(expression, min, max);
    case 'sequence':
      return sequenceWithLength(expression.items, min, max);
    default:
      return expression satisfies never;
  }
}

function repeatWithLength(
  { item, min: fewest, max: most }: Expression & { type: 'repeat' },
  min: number,
  max: number,
): Expression | undefined {
  const own = lengthsOf(item);
  const atLeast = Math.max(fewest, own.min === 0 ? fewest : Math.ceil(min / own.min));
  const atMost = Math.min(most, Math.floor(max / own.max));
  if (own.min > 0 && atLeast <= atMost) return repeat(item, atLeast, atMost);
  // As many as are needed at least, and each with an even share of the room.
  const count = Math.max(fewest, 1);
  return sequenceWithLength(new Array<Expression>(count).fill(item), min, max);
}

function sequenceWithLength(items: readonly Expression[], min: number, max: number): Expression | undefined {
  const own = items.map(lengthsOf);
  const shortest = own.reduce((sum, length) => sum + length.min, 0);
  let needed = Math.max(0, min - shortest);
  let room = max - shortest;
  if (room < 0) return undefined;
  let growing = own.filter((length) => length.max > length.min).length;
  const parts: Expression[] = [];
  // Those that can grow least choose first, and leave what they do not use to the others.
  const order = [...items.keys()].sort((a, b) => own[a]!.max - own[a]!.min - (own[b]!.max - own[b]!.min));
  for (const index of order) {
    const { min: low, max: high } = own[index]!;
    if (high === low) {
      parts[index] = items[index]!;
      continue;
    }
    const share = growing === 1 ? room : Math.max(Math.floor(room / growing), 0);
    const most = Math.min(high - low, share);
    const least = Math.min(needed, most);
    const part = withLength(items[index]!, low + least, low + most);
    if (part === undefined) return undefined;
    parts[index] = part;
    const used = lengthsOf(part);
    needed -= used.min - low;
    room -= used.max - low;
    growing--;
  }
  return needed > 0 ? undefined : sequence(parts);
}
