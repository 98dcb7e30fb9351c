import { isDeepStrictEqual } from 'node:util';
import { annotationFormats, formatExpression, formatNames, hasFormat } from './formats.js';
import type { Bound } from './number-range.js';
import { PatternRefusal, parsePattern } from './pattern.js';
import { memberPath, SchemaRefusal } from './schema-refusal.js';
import {
  itemNode,
  mergeShapes,
  type Node,
  type ObjectShape,
  type Place,
  propertyNode,
  type Shape,
} from './shape.js';

/** Keywords that are understood, by the types they speak of. */
const keywords = {
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  array: ['items', 'prefixItems', 'additionalItems', 'minItems', 'maxItems'],
  object: [
    'properties',
    'patternProperties',
    'additionalProperties',
    'propertyNames',
    'required',
    'minProperties',
    'maxProperties',
  ],
} as const;

/** Keywords that say something a grammar here does not hold. Any other that is not understood is an annotation. */
const unsupported = [
  'not',
  'if',
  'then',
  'else',
  'contains',
  'minContains',
  'maxContains',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'unevaluatedProperties',
  'unevaluatedItems',
  '$dynamicRef',
  '$recursiveRef',
] as const;

const typeNames = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'] as const;
type TypeName = (typeof typeNames)[number];

/** Ways in which one place may be fitted; more are refused, as they multiply. */
const maxShapes = 256;
/** References and alternatives inside each other, at one place. */
const maxDepth = 40;

type Schema = Readonly<Record<string, unknown>>;

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
      shapes = this.#all(node, 0);
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
    return this.shapesOf(node).some((shape) => this.#fitsShape(value, shape));
  }

  #all(node: Node, depth: number): readonly Shape[] {
    const [first, ...others] = node;
    if (first === undefined) return everything(this.#root.path);
    return others.reduce(
      (shapes, place) => this.#both(shapes, this.#read(place, depth), first.path),
      this.#read(first, depth),
    );
  }

  #read({ schema, path }: Place, depth: number): readonly Shape[] {
    if (depth > maxDepth) throw new SchemaRefusal(path, 'is nested too deeply, or refers to itself alone');
    if (schema === true) return everything(path);
    if (schema === false) return [];
    if (!isObject(schema)) throw new SchemaRefusal(path, 'must be a schema: an object, true or false');
    for (const keyword of unsupported) {
      if (schema[keyword] !== undefined) throw new SchemaRefusal(`${path}.${keyword}`, 'is not supported');
    }
    if (schema.uniqueItems === true) throw new SchemaRefusal(`${path}.uniqueItems`, 'is not supported');

    let shapes: readonly Shape[] = this.#ownShapes(schema, path);
    if (schema.$ref !== undefined) {
      shapes = this.#both(shapes, this.#read(this.#resolve(schema.$ref, path), depth + 1), path);
    }
    for (const place of this.#list(schema, 'allOf', path)) {
      shapes = this.#both(shapes, this.#read(place, depth + 1), path);
    }
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      if (schema[keyword] === undefined) continue;
      const branches = this.#list(schema, keyword, path).map((place) =>
        this.#both(shapes, this.#read(place, depth + 1), path),
      );
      if (keyword === 'oneOf') this.#checkApart(branches, `${path}.oneOf`);
      shapes = this.#limit(branches.flat(), path);
    }
    const values = this.#values(schema, path);
    if (values === undefined) return shapes;
    return values.flatMap((value): Shape[] =>
      shapes.some((shape) => this.#fitsShape(value, shape)) ? [{ kind: 'constant', value }] : [],
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
      return this.#fitsShape(left.value, right) ? left : undefined;
    }
    if (right.kind === 'constant' && left.kind !== 'constant') {
      return this.#fitsShape(right.value, left) ? right : undefined;
    }
    return mergeShapes(left, right);
  }

  #limit(shapes: readonly Shape[], path: string): readonly Shape[] {
    if (shapes.length > maxShapes && shapes.some(({ kind }) => kind !== 'constant')) {
      throw new SchemaRefusal(path, `has more than ${maxShapes} alternatives`);
    }
    return shapes;
  }

  /** What the keywords of each type say. */
  #ownShapes(schema: Schema, path: string): Shape[] {
    return this.#types(schema, path).flatMap((type): Shape[] => {
      switch (type) {
        case 'null':
          return [{ kind: 'constant', value: null }];
        case 'boolean':
          return [
            { kind: 'constant', value: true },
            { kind: 'constant', value: false },
          ];
        case 'integer':
        case 'number':
          return [this.#number(schema, path, type === 'integer')];
        case 'string':
          return [this.#string(schema, path)];
        case 'array':
          return [this.#array(schema, path)];
        case 'object':
          return [this.#object(schema, path)];
        default:
          return type satisfies never;
      }
    });
  }

  /** Without `type`, the types that the keywords speak of are meant; a schema without any takes every type. */
  #types(schema: Schema, path: string): TypeName[] {
    const { type } = schema;
    if (type === undefined) {
      const meant = Object.entries(keywords).filter(([, names]) => names.some((name) => name in schema));
      const names = meant.map(([name]) => name as TypeName);
      return names.length > 0 ? names : typeNames.filter((name) => name !== 'integer');
    }
    const types: unknown[] = Array.isArray(type) ? type : [type];
    for (const [index, name] of types.entries()) {
      if (typeNames.some((known) => known === name)) continue;
      const place = Array.isArray(type) ? `${path}.type[${index}]` : `${path}.type`;
      throw new SchemaRefusal(place, `must be one of ${typeNames.join(', ')}`);
    }
    const names = new Set(types as TypeName[]);
    if (names.has('number')) names.delete('integer');
    return [...names];
  }

  #number(schema: Schema, path: string, whole: boolean): Shape {
    const bound = (keyword: string, exclusive: boolean): Bound | undefined => {
      const value = schema[keyword];
      if (value === undefined) return undefined;
      if (typeof value !== 'number') throw new SchemaRefusal(`${path}.${keyword}`, 'must be a number');
      return { value, exclusive };
    };
    const [min, above] = [bound('minimum', false), bound('exclusiveMinimum', true)];
    const [max, below] = [bound('maximum', false), bound('exclusiveMaximum', true)];
    const { multipleOf } = schema;
    if (multipleOf !== undefined && !(Number.isSafeInteger(multipleOf) && Number(multipleOf) > 0)) {
      throw new SchemaRefusal(`${path}.multipleOf`, 'is supported for positive whole numbers only');
    }
    return {
      kind: 'number',
      whole: whole || multipleOf !== undefined,
      min: min && above ? (above.value >= min.value ? above : min) : (min ?? above),
      max: max && below ? (below.value <= max.value ? below : max) : (max ?? below),
      multiplesOf: multipleOf === undefined || multipleOf === 1 ? [] : [multipleOf as number],
      path,
    };
  }

  #string(schema: Schema, path: string): Shape {
    const { pattern, format } = schema;
    if (pattern !== undefined) checkPattern(pattern, `${path}.pattern`);
    const isFormat = format !== undefined && !(typeof format === 'string' && annotationFormats.has(format));
    if (isFormat && (typeof format !== 'string' || formatExpression(format) === undefined)) {
      throw new SchemaRefusal(`${path}.format`, `is not supported; known are ${formatNames.join(', ')}`);
    }
    return {
      kind: 'string',
      minLength: this.#count(schema, 'minLength', path) ?? 0,
      maxLength: this.#count(schema, 'maxLength', path) ?? Number.POSITIVE_INFINITY,
      patterns: pattern === undefined ? [] : [pattern as string],
      formats: isFormat ? [format as string] : [],
      path,
    };
  }

  #array(schema: Schema, path: string): Shape {
    // Draft 7 wrote what is now prefixItems as an array of items, with additionalItems for the rest.
    const isTuple = Array.isArray(schema.items);
    const prefixKeyword = isTuple ? 'items' : 'prefixItems';
    const restKeyword = isTuple ? 'additionalItems' : 'items';
    const rest = schema[restKeyword];
    return {
      kind: 'array',
      minItems: this.#count(schema, 'minItems', path) ?? 0,
      maxItems: this.#count(schema, 'maxItems', path) ?? Number.POSITIVE_INFINITY,
      clauses: [
        {
          prefix: this.#list(schema, prefixKeyword, path),
          items: rest === undefined ? undefined : { schema: rest, path: `${path}.${restKeyword}` },
        },
      ],
      path,
    };
  }

  #object(schema: Schema, path: string): Shape {
    const { required = [], additionalProperties, propertyNames } = schema;
    if (!Array.isArray(required) || required.some((name) => typeof name !== 'string')) {
      throw new SchemaRefusal(`${path}.required`, 'must be an array of names');
    }
    const patterns = this.#map(schema, 'patternProperties', path);
    for (const [source, { path: place }] of patterns) checkPattern(source, place);
    return {
      kind: 'object',
      required: new Set(required as string[]),
      minProperties: this.#count(schema, 'minProperties', path) ?? 0,
      maxProperties: this.#count(schema, 'maxProperties', path) ?? Number.POSITIVE_INFINITY,
      names: propertyNames === undefined ? [] : [{ schema: propertyNames, path: `${path}.propertyNames` }],
      clauses: [
        {
          properties: new Map(this.#map(schema, 'properties', path)),
          patterns,
          additional:
            additionalProperties === undefined
              ? undefined
              : { schema: additionalProperties, path: `${path}.additionalProperties` },
        },
      ],
      path,
    };
  }

  #count(schema: Schema, keyword: string, path: string): number | undefined {
    const value = schema[keyword];
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && Number(value) >= 0) return value as number;
    throw new SchemaRefusal(`${path}.${keyword}`, 'must be a whole number that is not negative');
  }

  #list(schema: Schema, keyword: string, path: string): Place[] {
    const list = schema[keyword];
    if (list === undefined) return [];
    if (!Array.isArray(list)) throw new SchemaRefusal(`${path}.${keyword}`, 'must be an array of schemas');
    return list.map((item: unknown, index) => ({ schema: item, path: `${path}.${keyword}[${index}]` }));
  }

  #map(schema: Schema, keyword: string, path: string): [string, Place][] {
    const map = schema[keyword];
    if (map === undefined) return [];
    if (!isObject(map)) throw new SchemaRefusal(`${path}.${keyword}`, 'must be an object of schemas');
    return Object.entries(map).map(([name, item]) => [
      name,
      { schema: item, path: memberPath(`${path}.${keyword}`, name) },
    ]);
  }

  /** The schema that a JSON pointer within this document names. */
  #resolve(ref: unknown, path: string): Place {
    const missing = new SchemaRefusal(
      `${path}.$ref`,
      `${JSON.stringify(ref)} is not a schema in this document`,
    );
    if (typeof ref !== 'string' || !(ref === '#' || ref.startsWith('#/'))) throw missing;
    let { schema, path: place } = this.#root;
    for (const part of ref.split('/').slice(1)) {
      const name = unescapePointer(part);
      if (Array.isArray(schema)) {
        schema = schema[Number(name)];
        place = `${place}[${name}]`;
      } else {
        if (!isObject(schema) || !Object.hasOwn(schema, name)) throw missing;
        schema = schema[name];
        place = memberPath(place, name);
      }
      if (schema === undefined) throw missing;
    }
    return { schema, path: place };
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

  #isNever(node: Node, depth: number): boolean {
    if (this.#reading.has(this.keyOf(node))) return false;
    return this.shapesOf(node).every((shape) => this.#apart(shape, shape, depth));
  }

  #fitsShape(value: unknown, shape: Shape): boolean {
    switch (shape.kind) {
      case 'constant':
        return isDeepStrictEqual(value, shape.value);
      case 'number': {
        if (typeof value !== 'number') return false;
        const { min, max, whole, multiplesOf } = shape;
        if (whole && !Number.isInteger(value)) return false;
        if (min && (min.exclusive ? value <= min.value : value < min.value)) return false;
        if (max && (max.exclusive ? value >= max.value : value > max.value)) return false;
        return multiplesOf.every((divisor) => value % divisor === 0);
      }
      case 'string': {
        if (typeof value !== 'string') return false;
        const length = Array.from(value).length;
        if (length < shape.minLength || length > shape.maxLength) return false;
        if (!shape.formats.every((format) => hasFormat(value, format))) return false;
        return shape.patterns.every((source) => new RegExp(source, 'u').test(value));
      }
      case 'array':
        if (!Array.isArray(value) || value.length < shape.minItems || value.length > shape.maxItems)
          return false;
        return value.every((item, index) => this.fits(item, itemNode(shape, index)));
      case 'object': {
        if (!isObject(value)) return false;
        const names = Object.keys(value);
        if (names.length < shape.minProperties || names.length > shape.maxProperties) return false;
        if ([...shape.required].some((name) => !Object.hasOwn(value, name))) return false;
        return names.every(
          (name) => this.fits(name, shape.names) && this.fits(value[name], propertyNode(shape, name)),
        );
      }
      default:
        return shape satisfies never;
    }
  }
}

function checkPattern(pattern: unknown, path: string): void {
  if (typeof pattern !== 'string') throw new SchemaRefusal(path, 'must be a regular expression');
  try {
    parsePattern(pattern);
  } catch (error) {
    if (error instanceof PatternRefusal) throw new SchemaRefusal(path, error.message);
    throw error;
  }
}

function everything(path: string): readonly Shape[] {
  return [
    { kind: 'constant', value: null },
    { kind: 'constant', value: true },
    { kind: 'constant', value: false },
    { kind: 'number', whole: false, min: undefined, max: undefined, multiplesOf: [], path },
    { kind: 'string', minLength: 0, maxLength: Number.POSITIVE_INFINITY, patterns: [], formats: [], path },
    { kind: 'array', minItems: 0, maxItems: Number.POSITIVE_INFINITY, clauses: [], path },
    {
      kind: 'object',
      required: new Set(),
      minProperties: 0,
      maxProperties: Number.POSITIVE_INFINITY,
      names: [],
      clauses: [],
      path,
    },
  ];
}

function isEverything(schema: unknown): boolean {
  return schema === true || (isObject(schema) && Object.keys(schema).length === 0);
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unescapePointer(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return part;
  }
}
