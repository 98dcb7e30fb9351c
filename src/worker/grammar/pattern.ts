import { anyCharacter, type Characters, complement, intersect, unite } from './characters.js';
import { anyText, choice, type Expression, nothing, repeat, sequence } from './expression.js';

/** Says why a pattern cannot be used; the text completes "pattern: ". */
export class PatternRefusal extends Error {
  override readonly name = 'PatternRefusal';
}

/** While a pattern is read, the places where a text begins and ends are parts like any other. */
type Part = Expression | { readonly type: 'start' | 'end' };

const digits: Characters = [[0x30, 0x39]];
const wordCharacters = unite([...digits, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]]);
const lineEnds: Characters = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];
const spaces = unite([
  ...lineEnds,
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);
const classEscapes: Readonly<Record<string, Characters>> = {
  d: digits,
  D: complement(digits),
  w: wordCharacters,
  W: complement(wordCharacters),
  s: spaces,
  S: complement(spaces),
};
const controlEscapes: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, '0': 0 };

/**
 * The texts in which a pattern of ECMAScript (with the flag `u`) finds something: anything may stand before and
 * behind what it matches unless it says `^` and `$`.
 * @throws PatternRefusal when it is not a pattern, or not a regular one.
 */
export function parsePattern(source: string): Expression {
  try {
    new RegExp(source, 'u');
  } catch {
    throw new PatternRefusal('is not a regular expression');
  }
  return free(new Parser(source).parse());
}

/** Puts any text before and behind what is not held by `^` and `$`. */
function free(part: Part): Expression {
  if (part.type === 'choice') return choice(part.items.map(free));
  const items: Part[] = part.type === 'sequence' ? [...part.items] : [part];
  if (items.length === 1 && items[0]!.type === 'choice') return free(items[0]!);
  const starts = items[0]?.type === 'start';
  const ends = items.at(-1)?.type === 'end';
  const inner = items.slice(starts ? 1 : 0, ends ? items.length - 1 : undefined);
  const held = inner.map((item) => expressionOf(item));
  return sequence([...(starts ? [] : [anyText]), ...held, ...(ends ? [] : [anyText])]);
}

function expressionOf(part: Part): Expression {
  switch (part.type) {
    case 'start':
    case 'end':
      throw new PatternRefusal('has ^ or $ in its middle, which is not supported');
    case 'sequence':
    case 'choice':
      return { ...part, items: part.items.map(expressionOf) };
    case 'repeat':
      return { ...part, item: expressionOf(part.item) };
    case 'characters':
      return part;
    default:
      return part satisfies never;
  }
}

class Parser {
  readonly #characters: readonly string[];
  #at = 0;

  constructor(source: string) {
    this.#characters = Array.from(source);
  }

  parse(): Part {
    return this.#disjunction(0);
  }

  #disjunction(depth: number): Part {
    if (depth > 50) throw new PatternRefusal('is nested too deeply');
    const alternatives = [this.#alternative(depth)];
    while (this.#take('|')) alternatives.push(this.#alternative(depth));
    return choice(alternatives as Expression[]);
  }

  #alternative(depth: number): Part {
    const parts: Part[] = [];
    while (this.#at < this.#characters.length && this.#next !== '|' && this.#next !== ')') {
      parts.push(this.#term(depth));
    }
    return parts.length === 0 ? nothing : sequence(parts as Expression[]);
  }

  #term(depth: number): Part {
    if (this.#take('^')) return { type: 'start' };
    if (this.#take('$')) return { type: 'end' };
    const atom = this.#atom(depth);
    const counts = this.#quantifier();
    if (!counts) return atom;
    if (atom.type === 'start' || atom.type === 'end') return atom;
    return repeat(atom as Expression, counts.min, counts.max);
  }

  #atom(depth: number): Part {
    if (this.#take('(')) {
      if (this.#take('?')) {
        if (this.#take('<') && this.#next !== '=' && this.#next !== '!') while (!this.#take('>')) this.#at++;
        else if (!this.#take(':')) throw new PatternRefusal('looks ahead or behind, which is not supported');
      }
      const inner = this.#disjunction(depth + 1);
      this.#take(')');
      return inner;
    }
    if (this.#take('[')) return { type: 'characters', characters: this.#class() };
    if (this.#take('.')) return { type: 'characters', characters: complement(unite(lineEnds)) };
    return { type: 'characters', characters: this.#character() };
  }

  /** Laziness changes which match is found, not whether there is one. */
  #quantifier(): { min: number; max: number } | undefined {
    const counts = this.#counts();
    if (counts) this.#take('?');
    return counts;
  }

  #counts(): { min: number; max: number } | undefined {
    if (this.#take('*')) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take('+')) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take('?')) return { min: 0, max: 1 };
    if (!this.#take('{')) return undefined;
    let text = '';
    while (!this.#take('}')) text += this.#characters[this.#at++];
    const [min = '', max] = text.split(',');
    return {
      min: Number(min),
      max: max === undefined ? Number(min) : max === '' ? Number.POSITIVE_INFINITY : Number(max),
    };
  }

  #class(): Characters {
    const negated = this.#take('^');
    const ranges: [number, number][] = [];
    while (!this.#take(']')) {
      const first = this.#classAtom();
      const isRange = this.#next === '-' && this.#characters[this.#at + 1] !== ']';
      if (!isRange) {
        ranges.push(...first.map(([from, to]): [number, number] => [from, to]));
        continue;
      }
      this.#at++;
      ranges.push([first[0]![0], this.#classAtom()[0]![0]]);
    }
    const characters = negated ? complement(unite(ranges)) : intersect(unite(ranges), anyCharacter);
    if (characters.length === 0) throw new PatternRefusal('has a class without characters');
    return characters;
  }

  #classAtom(): Characters {
    if (this.#next === '\\' && this.#characters[this.#at + 1] === 'b') {
      this.#at += 2;
      return [[8, 8]];
    }
    return this.#character();
  }

  /** One character, or the class that an escape names. */
  #character(): Characters {
    const character = this.#characters[this.#at++]!;
    if (character !== '\\') return single(character.codePointAt(0)!);
    const name = this.#characters[this.#at++]!;
    if (classEscapes[name]) return classEscapes[name];
    if (name in controlEscapes) return single(controlEscapes[name]!);
    if (/[1-9k]/.test(name)) throw new PatternRefusal('refers back to a group, which is not supported');
    if (/[bB]/.test(name)) throw new PatternRefusal('looks for word boundaries, which is not supported');
    if (/[pP]/.test(name)) throw new PatternRefusal('names Unicode properties, which is not supported');
    if (name === 'c') return single(this.#characters[this.#at++]!.codePointAt(0)! % 32);
    if (name === 'x') return single(this.#hex(2));
    if (name === 'u') return this.#unicode();
    return single(name.codePointAt(0)!);
  }

  #unicode(): Characters {
    if (this.#take('{')) {
      let text = '';
      while (!this.#take('}')) text += this.#characters[this.#at++];
      return single(Number.parseInt(text, 16));
    }
    const code = this.#hex(4);
    const isHigh = code >= 0xd800 && code <= 0xdbff;
    if (!isHigh || this.#next !== '\\' || this.#characters[this.#at + 1] !== 'u') return single(code);
    this.#at += 2;
    return single(0x10000 + (code - 0xd800) * 0x400 + (this.#hex(4) - 0xdc00));
  }

  #hex(length: number): number {
    const text = this.#characters.slice(this.#at, this.#at + length).join('');
    this.#at += length;
    return Number.parseInt(text, 16);
  }

  get #next(): string | undefined {
    return this.#characters[this.#at];
  }

  #take(character: string): boolean {
    if (this.#next !== character) return false;
    this.#at++;
    return true;
  }
}

function single(code: number): Characters {
  if (code >= 0xd800 && code <= 0xdfff) throw new PatternRefusal('names half of a surrogate pair');
  return [[code, code]];
}
