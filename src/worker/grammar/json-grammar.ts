import { writeArray } from './array-rules.js';
import { type Expression, expressionToEbnf, lengthsOf, withLength } from './expression.js';
import { formatExpression } from './formats.js';
import { anyNumber, numbersBetween, wholeBounds, wholeNumbers } from './number-range.js';
import { writeObject } from './object-rules.js';
import { parsePattern } from './pattern.js';
import { childNodes, isPossible } from './possible.js';
import { constantToEbnf, quote, type RuleBook } from './rule-book.js';
import { SchemaReader, type SchemaReaderOptions } from './schema-reader.js';
import { SchemaRefusal } from './schema-refusal.js';
import type { LeftOut, SchemaWriter } from './schema-writer.js';
import type { Node, NumberShape, Place, Shape, StringShape } from './shape.js';

/** Places with rules of their own, and EBNF, of one schema. */
const maxNodes = 5_000;
const maxCharacters = 2_000_000;
/** Multiples that are written out one by one. */
const maxMultiples = 500;
/** Counting in the grammar costs the compiler a state for each character, so longer runs are counted beside it. */
const maxCountedInGrammar = 8;

export interface SchemaOptions extends SchemaReaderOptions {
  /** Schemas that the value must fit too. */
  readonly besides?: readonly Place[];
}

/**
 * Writes the rules of a schema; returns the name of the rule that is a value of it.
 * @throws SchemaRefusal when the schema cannot be honoured exactly, or no value fits it.
 */
export function writeSchema(root: Place, book: RuleBook, { strict, besides = [] }: SchemaOptions): string {
  const writer = new Writer(new SchemaReader(root, { strict }), book, root.path);
  return writer.write([root, ...besides]);
}

/** Writes one rule for each node of a schema that is reached. */
class Writer implements SchemaWriter {
  readonly reader: SchemaReader;
  readonly book: RuleBook;
  readonly #path: string;
  readonly #names = new Map<string, string>();
  /** Nodes that have a name and no rule yet. */
  readonly #waiting: Node[] = [];
  /** Nodes that some value fits, and those that none does. */
  #possible: ReadonlySet<string> = new Set();

  constructor(reader: SchemaReader, book: RuleBook, path: string) {
    this.reader = reader;
    this.book = book;
    this.#path = path;
  }

  /** @throws SchemaRefusal */
  write(root: Node): string {
    this.#possible = this.#findPossible(root);
    if (!this.isPossible(root)) throw new SchemaRefusal(this.#path, 'no value fits it');
    const name = this.ruleOf(root);
    const waiting = this.#waiting;
    for (let node = waiting.shift(); node; node = waiting.shift()) this.#define(node);
    return name;
  }

  ruleOf(node: Node): string {
    const key = this.reader.keyOf(node);
    if (key === '') return 'value';
    let name = this.#names.get(key);
    if (name === undefined) {
      name = this.book.newName('value');
      this.#names.set(key, name);
      this.#waiting.push(node);
    }
    return name;
  }

  isPossible(node: Node): boolean {
    return this.#possible.has(this.reader.keyOf(node));
  }

  string(shape: StringShape, left: LeftOut = nothingLeftOut): string {
    const { minLength, maxLength } = shape;
    const expression = this.#expressionOf(shape);
    const isWhole = left.excluded.length === 0 && left.excludedPatterns.length === 0;
    if (expression === undefined) {
      if (isWhole && minLength === 0 && maxLength === Number.POSITIVE_INFINITY) return 'string';
      return this.book.countedString({ minLength, maxLength, ...left });
    }
    const run =
      expression.type === 'repeat' && expression.item.type === 'characters' ? expression : undefined;
    if (run && (run.max > maxCountedInGrammar || !isWhole)) {
      const rule = {
        minLength: Math.max(minLength, run.min),
        maxLength: Math.min(maxLength, run.max),
        ...left,
      };
      if (rule.minLength > rule.maxLength) throw this.#tooShort(shape);
      return this.book.countedString(rule, `${expressionToEbnf(run.item)}* ${quote}`);
    }
    const fitting = withLength(expression, minLength, maxLength);
    if (fitting === undefined) throw this.#tooShort(shape);
    const text = expressionToEbnf(fitting);
    if (isWhole) return `${quote} ${text} ${quote}`;
    const lengths = lengthsOf(fitting);
    return this.book.countedString(
      { minLength: lengths.min, maxLength: lengths.max, ...left },
      `${text} ${quote}`,
    );
  }

  #tooShort({ path }: StringShape): SchemaRefusal {
    return new SchemaRefusal(path, 'its pattern or format does not go with its minLength and maxLength');
  }

  /** What pattern and format say; undefined for any text. */
  #expressionOf({ patterns, formats, path }: StringShape): Expression | undefined {
    if (patterns.length + formats.length > 1) {
      const keyword = formats.length > 0 ? 'format' : 'pattern';
      throw new SchemaRefusal(
        `${path}.${keyword}`,
        'is not supported together with another pattern or format',
      );
    }
    if (formats.length > 0) return formatExpression(formats[0]!);
    return patterns.length > 0 ? parsePattern(patterns[0]!) : undefined;
  }

  #findPossible(root: Node): ReadonlySet<string> {
    const nodes = new Map<string, { node: Node; shapes: readonly Shape[] }>();
    const waiting: Node[] = [root];
    for (let node = waiting.shift(); node; node = waiting.shift()) {
      const key = this.reader.keyOf(node);
      if (nodes.has(key)) continue;
      if (nodes.size === maxNodes) throw new SchemaRefusal(this.#path, `has more than ${maxNodes} parts`);
      const shapes = this.reader.shapesOf(node);
      nodes.set(key, { node, shapes });
      for (const shape of shapes) waiting.push(...childNodes(shape, this.reader));
    }
    const possible = new Set<string>();
    const holds = (node: Node) => possible.has(this.reader.keyOf(node));
    for (let grown = true; grown; ) {
      grown = false;
      for (const [key, { shapes }] of nodes) {
        if (possible.has(key) || !shapes.some((shape) => isPossible(shape, this.reader, holds))) continue;
        possible.add(key);
        grown = true;
      }
    }
    return possible;
  }

  #define(node: Node): void {
    const holds = (other: Node) => this.isPossible(other);
    const shapes = this.reader.shapesOf(node).filter((shape) => isPossible(shape, this.reader, holds));
    const strings = shapes.filter((shape) => shape.kind === 'string');
    const lengths = new Set(strings.map(({ minLength, maxLength }) => `${minLength}-${maxLength}`));
    if (lengths.size > 1) {
      throw new SchemaRefusal(
        strings[1]!.path,
        'is an alternative to strings of other lengths, which is not supported',
      );
    }
    const name = this.#names.get(this.reader.keyOf(node))!;
    this.book.define(name, [...new Set(shapes.map((shape) => this.#shape(shape)))].join(' | '));
    if (this.book.characters > maxCharacters) throw new SchemaRefusal(this.#path, 'is too large');
  }

  #shape(shape: Shape): string {
    switch (shape.kind) {
      case 'constant':
        return constantToEbnf(shape.value);
      case 'number':
        return this.#number(shape);
      case 'string':
        return this.string(shape);
      case 'array':
        return writeArray(shape, this);
      case 'object':
        return writeObject(shape, this);
      default:
        return shape satisfies never;
    }
  }

  #number(shape: NumberShape): string {
    const { whole, min, max, multiplesOf, path } = shape;
    if (!whole) {
      const numbers = min || max ? numbersBetween(shape) : anyNumber;
      if (numbers === undefined) throw new SchemaRefusal(path, 'no number of 15 digits is in its range');
      return expressionToEbnf(numbers);
    }
    const { first, last } = wholeBounds(shape);
    if (multiplesOf.length === 0) {
      const numbers = wholeNumbers(first, last);
      if (numbers === undefined)
        throw new SchemaRefusal(path, 'no whole number of 15 digits is in its range');
      return expressionToEbnf(numbers);
    }
    const step = multiplesOf.reduce(leastCommonMultiple);
    const count = Math.floor(last / step) - Math.ceil(first / step) + 1;
    if (count > 0 && count <= maxMultiples) {
      const from = Math.ceil(first / step);
      return Array.from({ length: count }, (_, index) => constantToEbnf((from + index) * step)).join(' | ');
    }
    const zeros = /^10*$/.test(String(step)) ? String(step).length - 1 : -1;
    if (min || max || zeros === -1 || zeros > 12) {
      throw new SchemaRefusal(
        `${path}.multipleOf`,
        `is supported where it leaves 1 to ${maxMultiples} numbers, and for powers of ten`,
      );
    }
    return `"0" | "-"? [1-9] [0-9]{0,${13 - zeros}} "${'0'.repeat(zeros)}"`;
  }
}

const nothingLeftOut: LeftOut = { excluded: [], excludedPatterns: [] };

function leastCommonMultiple(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
}
