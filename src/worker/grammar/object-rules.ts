import { literalToEbnf } from './characters.js';
import { colon, space } from './json-rules.js';
import { allNames, patternNodes } from './possible.js';
import { SchemaRefusal } from './schema-refusal.js';
import type { SchemaWriter } from './schema-writer.js';
import { type ObjectShape, propertyNode, type StringShape } from './shape.js';
import { type LeftOut, writeOtherString } from './string-rules.js';

/** States of one object: which of its properties may come next, and how many there are. */
const maxStates = 10_000;

/**
 * An object in EBNF. The properties that are known come in the order of the schema, each once; then, where the schema
 * lets them, others. A name that is known is no name of another, so that no property is there twice with a value that
 * only its later namesake may have.
 */
export function writeObject(shape: ObjectShape, writer: SchemaWriter): string {
  return new ObjectRules(shape, writer).write();
}

class ObjectRules {
  readonly #shape: ObjectShape;
  readonly #writer: SchemaWriter;
  readonly #names: readonly string[];
  /** `name: value` of a property that is not known, in EBNF; undefined when there is none. */
  readonly #other: string | undefined;
  readonly #states = new Map<string, string>();
  /** Whether the number of properties decides what may come next. */
  readonly #counting: boolean;

  constructor(shape: ObjectShape, writer: SchemaWriter) {
    this.#shape = shape;
    this.#writer = writer;
    this.#names = allNames(shape, writer.reader).filter((name) =>
      writer.isPossible(propertyNode(shape, name)),
    );
    const others = this.#otherPairs();
    this.#other = others.length > 0 ? writer.book.add('other', writer.book.any(others)) : undefined;
    const { required, minProperties, maxProperties } = shape;
    const most = others.length > 0 ? Number.POSITIVE_INFINITY : this.#names.length;
    this.#counting = minProperties > required.size || maxProperties < most;
  }

  write(): string {
    if (!this.#canReachMinimum(0, 0, 0)) {
      throw new SchemaRefusal(
        `${this.#shape.path}.minProperties`,
        'is supported for as many properties as have names, and one more',
      );
    }
    return `"{" ${space} ${this.#known(0, 0)}`;
  }

  /** What may follow when the properties before `index` were passed and `count` of them are there. */
  #known(index: number, count: number): string {
    if (index === this.#names.length) return this.#others(count, 0);
    return this.#state(`${index}:${this.#counting ? count : Math.min(count, 1)}`, () => {
      const name = this.#names[index]!;
      const { required, maxProperties } = this.#shape;
      const alternatives: string[] = [];
      const left = this.#names.slice(index + 1).filter((other) => required.has(other)).length;
      if (count + 1 + left <= maxProperties) {
        const value = this.#writer.ruleOf(propertyNode(this.#shape, name));
        const pair = `${literalToEbnf(JSON.stringify(name))} ${colon} ${value}`;
        alternatives.push(`${separator(count)} ${pair} ${this.#known(index + 1, count + 1)}`);
      }
      if (!required.has(name) && this.#canReachMinimum(index + 1, count, 0)) {
        alternatives.push(this.#known(index + 1, count));
      }
      return this.#writer.book.any(alternatives);
    });
  }

  /** What may follow behind `count` known properties and `others` others. */
  #others(count: number, others: number): string {
    const { minProperties, maxProperties } = this.#shape;
    const key = this.#counting ? `${count}+${others}` : `+${Math.min(count + others, 1)}`;
    return this.#state(key, () => {
      const alternatives: string[] = [];
      // Others may share a name: together they are sure to be one property.
      if (!this.#counting || count + Math.min(others, 1) >= minProperties) alternatives.push(`${space} "}"`);
      if (this.#other !== undefined && count + others < maxProperties) {
        const seen = Number.isFinite(maxProperties) ? others + 1 : 1;
        alternatives.push(`${separator(count + others)} ${this.#other} ${this.#others(count, seen)}`);
      }
      return this.#writer.book.any(alternatives);
    });
  }

  #canReachMinimum(index: number, count: number, others: number): boolean {
    const { minProperties, maxProperties } = this.#shape;
    const known = Math.min(count + this.#names.length - index, maxProperties);
    const more = this.#other === undefined || known === maxProperties ? others : 1;
    return known + more >= minProperties;
  }

  #state(key: string, body: () => string): string {
    let name = this.#states.get(key);
    if (name === undefined) {
      if (this.#states.size === maxStates)
        throw new SchemaRefusal(this.#shape.path, 'has too many properties');
      name = this.#writer.book.newName('members');
      this.#states.set(key, name);
      this.#writer.book.define(name, body());
    }
    return name;
  }

  #otherPairs(): string[] {
    const { reader } = this.#writer;
    const patterns = patternNodes(this.#shape, reader).filter(({ node }) => this.#writer.isPossible(node));
    const sources = this.#shape.clauses.flatMap((clause) => clause.patterns.map(([source]) => source));
    const known = allNames(this.#shape, reader);
    const mentioned = this.#shape.clauses.flatMap(({ properties }) => [...properties.keys()]);
    const texts = [...new Set([...known, ...mentioned])];
    const pairs = patterns.flatMap(({ source, node }) => {
      const others = sources.filter((other) => other !== source);
      return this.#pairs([source], { texts, patterns: others }, this.#writer.ruleOf(node));
    });
    const additional = reader.additionalNode(this.#shape);
    if (additional === undefined || !this.#writer.isPossible(additional)) return pairs;
    const left = { texts, patterns: sources };
    return [...pairs, ...this.#pairs([], left, this.#writer.ruleOf(additional))];
  }

  #pairs(patterns: readonly string[], left: LeftOut, value: string): string[] {
    const { names, path } = this.#shape;
    const any: StringShape = {
      kind: 'string',
      minLength: 0,
      maxLength: Number.POSITIVE_INFINITY,
      patterns: [],
      formats: [],
      path,
    };
    const shapes = names.length === 0 ? [any] : this.#writer.reader.shapesOf(names);
    return shapes.flatMap((shape) => {
      // Names that are listed are known properties.
      if (shape.kind !== 'string') return [];
      const name = { ...shape, patterns: [...new Set([...shape.patterns, ...patterns])] };
      const other = writeOtherString(name, left, this.#writer.book);
      return other === undefined ? [] : [`${other} ${colon} ${value}`];
    });
  }
}

function separator(count: number): string {
  return count === 0 ? '' : `"," ${space}`;
}
