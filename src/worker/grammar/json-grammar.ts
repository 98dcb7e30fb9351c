import { writeArray } from './array-rules.js';
import { Automaton } from './automaton.js';
import { bounded } from './bounded-automaton.js';
import { numberAutomaton } from './number-rules.js';
import { writeObject } from './object-rules.js';
import { childNodes, isPossible } from './possible.js';
import type { RuleBook } from './rule-book.js';
import { SchemaReader, type SchemaReaderOptions } from './schema-reader.js';
import { SchemaRefusal } from './schema-refusal.js';
import type { SchemaWriter } from './schema-writer.js';
import type { ConstantShape, Node, NumberShape, Place, Shape, StringShape } from './shape.js';
import { writeString } from './string-rules.js';

/** Places with rules of their own, and EBNF, of one schema. */
const maxNodes = 5_000;
const maxCharacters = 2_000_000;

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
    const inwards = [...nodes].reverse();
    const possible = new Set<string>();
    const holds = (node: Node) => possible.has(this.reader.keyOf(node));
    for (let grown = true; grown; ) {
      grown = false;
      // Parts come behind what they are parts of, and say whether it is possible.
      for (const [key, { shapes }] of inwards) {
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
    const constants = shapes.flatMap((shape) =>
      shape.kind === 'constant' ? [JSON.stringify(shape.value)] : [],
    );
    const others = shapes.flatMap((shape) => (shape.kind === 'constant' ? [] : [this.#shape(shape)]));
    if (constants.length > 0) {
      const texts = bounded(node[0]!.path, () => Automaton.ofTexts(constants));
      others.push(this.book.automaton(texts, '""'));
    }
    const name = this.#names.get(this.reader.keyOf(node))!;
    this.book.define(name, this.book.any([...new Set(others)]));
    if (this.book.characters > maxCharacters) throw new SchemaRefusal(this.#path, 'is too large');
  }

  #shape(shape: Exclude<Shape, ConstantShape>): string {
    switch (shape.kind) {
      case 'number':
        return this.book.once(keyOf(shape), () => this.book.automaton(numberAutomaton(shape), '""'));
      case 'string':
        return this.book.once(keyOf(shape), () => writeString(shape, this.book));
      case 'array':
        return writeArray(shape, this);
      case 'object':
        return writeObject(shape, this);
      default:
        return shape satisfies never;
    }
  }
}

/** Tells shapes of numbers and strings apart, wherever they stand. */
function keyOf({ path, ...shape }: NumberShape | StringShape): string {
  return JSON.stringify(shape, (_, value) => (value === Number.POSITIVE_INFINITY ? 'any' : value));
}
