import { isDeepStrictEqual } from 'node:util';
import { isOfShape } from './fit.js';
import { resolve } from './json-pointer.js';
import { anyShapes, ownShapes, placesOf } from './own-shapes.js';
import { isObject, refuseUnsupported, type Schema, speaksOfTypes } from './schema-keywords.js';
import { SchemaRefusal } from './schema-refusal.js';
import {
  itemNode,
  mergeShapes,
  type Node,
  type ObjectShape,
  type Place,
  propertyNode,
  type Shape,
} from './shape.js';

/** Ways in which one place may be fitted; more are refused, as they multiply. */
const maxShapes = 256;
/** References and alternatives inside each other, at one place. */
const maxDepth = 40;

export interface SchemaReaderOptions {
  /** Objects that do not speak of additional properties have none. */
  readonly strict: boolean;
}

/**
 * Reads a JSON schema (2020-12, with the forms of draft 7 that still occur) into shapes, place by place: a schema
 * may refer to itself. What cannot be honoured exactly is refused.
 */
export class SchemaReader {
  readonly #root: Place;
  readonly #strict: boolean;
  readonly #ids = new Map<unknown, number>();
  readonly #shapes = new Map<string, readonly Shape[]>();
  /** Of the schemas that were read. */
  readonly #known = new Map<Schema, readonly Shape[]>();
  /** Nodes whose shapes are being found: they cannot depend on those of the same node. */
  readonly #reading = new Set<string>();

  constructor(root: Place, { strict }: SchemaReaderOptions) {
    this.#root = root;
    this.#strict = strict;
  }

  /** Tells nodes apart: the same schemas, the same key. */
  keyOf(node: Node): string {
    const ids = new Set<number>();
    for (const { schema } of node) {
      const id = this.#ids.get(schema) ?? this.#ids.size;
      this.#ids.set(schema, id);
      if (!isEverything(schema)) ids.add(id);
    }
    return [...ids].sort((a, b) => a - b).join('+');
  }

  /** @throws SchemaRefusal */
  shapesOf(node: Node): readonly Shape[] {
    const key = this.keyOf(node);
    let shapes = this.#shapes.get(key);
    if (shapes === undefined) {
      const path = node[0]?.path ?? this.#root.path;
      if (this.#reading.has(key)) throw new SchemaRefusal(path, 'cannot be told apart from itself');
      this.#reading.add(key);
      shapes = this.#all(node);
      this.#reading.delete(key);
      this.#shapes.set(key, shapes);
    }
    return shapes;
  }

  /** What properties that no schema mentions must fit; undefined when there may be none. */
  additionalNode({ clauses }: ObjectShape): Node | undefined {
    const said = clauses.flatMap(({ additional }) => additional ?? []);
    if (said.length === 0 && clauses.length > 0 && this.#strict) return undefined;
    return said.some(({ schema }) => schema === false) ? undefined : said;
  }

  /** Whether a value fits every schema of a node. */
  fits(value: unknown, node: Node): boolean {
    return this.shapesOf(node).some((shape) => this.#isOfShape(value, shape));
  }

  #all(node: Node): readonly Shape[] {
    const [first, ...others] = node;
    if (first === undefined) return anyShapes(this.#root.path);
    return others.reduce(
      (shapes, place) => this.#both(shapes, this.#read(place, []), first.path),
      this.#read(first, []),
    );
  }

  /** @param within schemas of which this one is a part at the same place, or that refer to it. */
  #read({ schema, path }: Place, within: readonly unknown[]): readonly Shape[] {
    if (schema === true) return anyShapes(path);
    if (schema === false) return [];
    if (!isObject(schema)) throw new SchemaRefusal(path, 'must be a schema: an object, true or false');
    let shapes = this.#known.get(schema);
    if (shapes === undefined) {
      if (within.includes(schema)) throw new SchemaRefusal(path, 'refers to itself alone');
      if (within.length === maxDepth) throw new SchemaRefusal(path, 'is nested too deeply');
      shapes = this.#readObject(schema, path, [...within, schema]);
      this.#known.set(schema, shapes);
    }
    return shapes;
  }

  #readObject(schema: Schema, path: string, within: readonly unknown[]): readonly Shape[] {
    refuseUnsupported(schema, path);
    let shapes: readonly Shape[] | undefined = speaksOfTypes(schema) ? ownShapes(schema, path) : undefined;
    const narrowed = (place: Place): readonly Shape[] => {
      const more = this.#read(place, within);
      return shapes === undefined ? more : this.#both(shapes, more, path);
    };
    if (schema.$ref !== undefined) shapes = narrowed(resolve(schema.$ref, this.#root, path));
    for (const place of placesOf(schema, 'allOf', path)) shapes = narrowed(place);
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      if (schema[keyword] === undefined) continue;
      const branches = placesOf(schema, keyword, path).map(narrowed);
      if (keyword === 'oneOf') this.#checkApart(branches, `${path}.oneOf`);
      shapes = this.#limit([...new Set(branches.flat())], path);
    }
    const all = shapes ?? anyShapes(path);
    return (
      this.#values(schema, path)?.flatMap((value): Shape[] =>
        all.some((shape) => this.#isOfShape(value, shape)) ? [{ kind: 'constant', value }] : [],
      ) ?? all
    );
  }

  /** What const and enum name. */
  #values(schema: Schema, path: string): readonly unknown[] | undefined {
    const { enum: values } = schema;
    if (values === undefined) return 'const' in schema ? [schema.const] : undefined;
    if (!Array.isArray(values)) throw new SchemaRefusal(`${path}.enum`, 'must be an array');
    return 'const' in schema ? values.filter((value) => isDeepStrictEqual(value, schema.const)) : values;
  }

  #both(one: readonly Shape[], other: readonly Shape[], path: string): readonly Shape[] {
    if (one === other) return one;
    const merged: Shape[] = [];
    for (const left of one) {
      for (const right of other) {
        const shape = this.#merge(left, right);
        if (shape) merged.push(shape);
      }
      this.#limit(merged, path);
    }
    return merged;
  }

  #merge(left: Shape, right: Shape): Shape | undefined {
    if (left.kind === 'constant' && right.kind !== 'constant') {
      return this.#isOfShape(left.value, right) ? left : undefined;
    }
    if (right.kind === 'constant' && left.kind !== 'constant') {
      return this.#isOfShape(right.value, left) ? right : undefined;
    }
    return mergeShapes(left, right);
  }

  #limit(shapes: readonly Shape[], path: string): readonly Shape[] {
    if (shapes.length > maxShapes && shapes.some(({ kind }) => kind !== 'constant')) {
      throw new SchemaRefusal(path, `has more than ${maxShapes} alternatives`);
    }
    return shapes;
  }

  /** Exactly one of a oneOf may fit: with branches that exclude each other, that is any one. */
  #checkApart(branches: readonly (readonly Shape[])[], path: string): void {
    for (const [index, one] of branches.entries()) {
      for (const other of branches.slice(index + 1)) {
        if (one.every((left) => other.every((right) => this.#apart(left, right, 0)))) continue;
        throw new SchemaRefusal(path, 'has branches that one value might fit together; use anyOf');
      }
    }
  }

  /** Whether no value fits both; false where that is not plain to see. */
  #apart(one: Shape, other: Shape, depth: number): boolean {
    const merged = this.#merge(one, other);
    if (merged === undefined) return true;
    switch (merged.kind) {
      case 'constant':
        return false;
      case 'string':
        return merged.minLength > merged.maxLength;
      case 'number': {
        const { min, max } = merged;
        if (min === undefined || max === undefined) return false;
        return min.value > max.value || (min.value === max.value && (min.exclusive || max.exclusive));
      }
      case 'array':
        if (merged.minItems > merged.maxItems) return true;
        return (
          depth < 4 &&
          Array.from({ length: Math.min(merged.minItems, 8) }, (_, index) => itemNode(merged, index)).some(
            (node) => this.#isNever(node, depth + 1),
          )
        );
      case 'object':
        if (merged.minProperties > merged.maxProperties) return true;
        return (
          depth < 4 &&
          [...merged.required].some((name) => this.#isNever(propertyNode(merged, name), depth + 1))
        );
      default:
        return merged satisfies never;
    }
  }

  #isOfShape(value: unknown, shape: Shape): boolean {
    return isOfShape(value, shape, (part, node) => this.fits(part, node));
  }

  #isNever(node: Node, depth: number): boolean {
    if (this.#reading.has(this.keyOf(node))) return false;
    return this.shapesOf(node).every((shape) => this.#apart(shape, shape, depth));
  }
}

function isEverything(schema: unknown): boolean {
  return schema === true || (isObject(schema) && Object.keys(schema).length === 0);
}
