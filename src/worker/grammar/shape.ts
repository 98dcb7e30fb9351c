import { isDeepStrictEqual } from 'node:util';
import type { NumberRange } from './number-range.js';

/** A schema, and where it stands in the request. */
export interface Place {
  readonly schema: unknown;
  readonly path: string;
}

/** Schemas that a value must fit all of. */
export type Node = readonly Place[];

/** What one schema says of an object's properties. */
export interface ObjectClause {
  readonly properties: ReadonlyMap<string, Place>;
  readonly patterns: ReadonlyArray<readonly [source: string, place: Place]>;
  /** Of the properties that neither names; undefined when it says nothing. */
  readonly additional: Place | undefined;
}

/** What one schema says of an array's items. */
export interface ArrayClause {
  readonly prefix: readonly Place[];
  /** Of the items behind the prefix; undefined when it says nothing. */
  readonly items: Place | undefined;
}

/** One way in which a value can fit a schema. A schema is a list of these, any of which will do. */
export type Shape = ConstantShape | NumberShape | StringShape | ArrayShape | ObjectShape;

export interface ConstantShape {
  readonly kind: 'constant';
  readonly value: unknown;
}

export interface NumberShape extends NumberRange {
  readonly kind: 'number';
  readonly whole: boolean;
  /** Whole and positive; the number is a multiple of each. */
  readonly multiplesOf: readonly number[];
  readonly path: string;
}

export interface StringShape {
  readonly kind: 'string';
  readonly minLength: number;
  readonly maxLength: number;
  readonly patterns: readonly string[];
  readonly formats: readonly string[];
  readonly path: string;
}

export interface ArrayShape {
  readonly kind: 'array';
  readonly minItems: number;
  readonly maxItems: number;
  readonly clauses: readonly ArrayClause[];
  readonly path: string;
}

export interface ObjectShape {
  readonly kind: 'object';
  readonly required: ReadonlySet<string>;
  readonly minProperties: number;
  readonly maxProperties: number;
  /** What every property's name must fit. */
  readonly names: Node;
  readonly clauses: readonly ObjectClause[];
  readonly path: string;
}

/** What both shapes allow; undefined when a value cannot fit both. Constants are checked by the caller. */
export function mergeShapes(one: Shape, other: Shape): Shape | undefined {
  if (one === other) return one;
  if (one.kind === 'constant' && other.kind === 'constant') {
    return isDeepStrictEqual(one.value, other.value) ? one : undefined;
  }
  if (one.kind === 'number' && other.kind === 'number') {
    return {
      ...one,
      whole: one.whole || other.whole,
      min: tighter(one.min, other.min, 1),
      max: tighter(one.max, other.max, -1),
      multiplesOf: [...new Set([...one.multiplesOf, ...other.multiplesOf])],
    };
  }
  if (one.kind === 'string' && other.kind === 'string') {
    return {
      ...one,
      minLength: Math.max(one.minLength, other.minLength),
      maxLength: Math.min(one.maxLength, other.maxLength),
      patterns: [...new Set([...one.patterns, ...other.patterns])],
      formats: [...new Set([...one.formats, ...other.formats])],
    };
  }
  if (one.kind === 'array' && other.kind === 'array') {
    return {
      ...one,
      minItems: Math.max(one.minItems, other.minItems),
      maxItems: Math.min(one.maxItems, other.maxItems),
      clauses: [...new Set([...one.clauses, ...other.clauses])],
    };
  }
  if (one.kind === 'object' && other.kind === 'object') {
    return {
      ...one,
      required: new Set([...one.required, ...other.required]),
      minProperties: Math.max(one.minProperties, other.minProperties),
      maxProperties: Math.min(one.maxProperties, other.maxProperties),
      names: [...new Set([...one.names, ...other.names])],
      clauses: [...new Set([...one.clauses, ...other.clauses])],
    };
  }
  return undefined;
}

function tighter(one: NumberRange['min'], other: NumberRange['min'], direction: 1 | -1): NumberRange['min'] {
  if (one === undefined || other === undefined) return one ?? other;
  if (one.value === other.value) return one.exclusive ? one : other;
  return one.value * direction > other.value * direction ? one : other;
}

/** What the item at `index` must fit. */
export function itemNode({ clauses }: ArrayShape, index: number): Node {
  return clauses.flatMap(({ prefix, items }) => prefix[index] ?? items ?? []);
}

/** The items that have a schema of their own. */
export function prefixLength({ clauses }: ArrayShape): number {
  return Math.max(0, ...clauses.map(({ prefix }) => prefix.length));
}

/** What the property `name` must fit. */
export function propertyNode({ clauses }: ObjectShape, name: string): Node {
  return clauses.flatMap(({ properties, patterns, additional }) => {
    const own = properties.get(name);
    const matching = patterns.filter(([source]) => new RegExp(source, 'u').test(name));
    const places = [...(own ? [own] : []), ...matching.map(([, place]) => place)];
    return places.length > 0 ? places : (additional ?? []);
  });
}

/** The names that the schemas mention, in their order. */
export function propertyNames({ clauses, required }: ObjectShape): string[] {
  return [...new Set([...clauses.flatMap(({ properties }) => [...properties.keys()]), ...required])];
}
