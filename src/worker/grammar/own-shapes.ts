import { annotationFormats, formatExpression, formatNames } from './formats.js';
import type { Bound } from './number-range.js';
import { PatternRefusal, parsePattern } from './pattern.js';
import { isObject, type Schema, typesOf } from './schema-keywords.js';
import { memberPath, SchemaRefusal } from './schema-refusal.js';
import type { Place, Shape } from './shape.js';

/** What the keywords of each type say, of those types that a schema speaks of. @throws SchemaRefusal */
export function ownShapes(schema: Schema, path: string): Shape[] {
  return typesOf(schema, path).flatMap((type): Shape[] => {
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
        return [numberShape(schema, path, type === 'integer')];
      case 'string':
        return [stringShape(schema, path)];
      case 'array':
        return [arrayShape(schema, path)];
      case 'object':
        return [objectShape(schema, path)];
      default:
        return type satisfies never;
    }
  });
}

/** The shapes of any value: nothing is said of its parts. */
export function anyShapes(path: string): readonly Shape[] {
  return ownShapes({}, path).map((shape) => ('clauses' in shape ? { ...shape, clauses: [] } : shape));
}

function numberShape(schema: Schema, path: string, whole: boolean): Shape {
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

function stringShape(schema: Schema, path: string): Shape {
  const { pattern, format } = schema;
  if (pattern !== undefined) checkPattern(pattern, `${path}.pattern`);
  const isFormat = format !== undefined && !(typeof format === 'string' && annotationFormats.has(format));
  if (isFormat && (typeof format !== 'string' || formatExpression(format) === undefined)) {
    throw new SchemaRefusal(`${path}.format`, `is not supported; known are ${formatNames.join(', ')}`);
  }
  return {
    kind: 'string',
    minLength: countOf(schema, 'minLength', path) ?? 0,
    maxLength: countOf(schema, 'maxLength', path) ?? Number.POSITIVE_INFINITY,
    patterns: pattern === undefined ? [] : [pattern as string],
    formats: isFormat ? [format as string] : [],
    path,
  };
}

function arrayShape(schema: Schema, path: string): Shape {
  // Draft 7 wrote what is now prefixItems as an array of items, with additionalItems for the rest.
  const isTuple = Array.isArray(schema.items);
  const prefixKeyword = isTuple ? 'items' : 'prefixItems';
  const restKeyword = isTuple ? 'additionalItems' : 'items';
  const rest = schema[restKeyword];
  return {
    kind: 'array',
    minItems: countOf(schema, 'minItems', path) ?? 0,
    maxItems: countOf(schema, 'maxItems', path) ?? Number.POSITIVE_INFINITY,
    clauses: [
      {
        prefix: placesOf(schema, prefixKeyword, path),
        items: rest === undefined ? undefined : { schema: rest, path: `${path}.${restKeyword}` },
      },
    ],
    path,
  };
}

function objectShape(schema: Schema, path: string): Shape {
  const { required = [], additionalProperties, propertyNames } = schema;
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string')) {
    throw new SchemaRefusal(`${path}.required`, 'must be an array of names');
  }
  const patterns = mapOf(schema, 'patternProperties', path);
  for (const [source, { path: place }] of patterns) checkPattern(source, place);
  return {
    kind: 'object',
    required: new Set(required as string[]),
    minProperties: countOf(schema, 'minProperties', path) ?? 0,
    maxProperties: countOf(schema, 'maxProperties', path) ?? Number.POSITIVE_INFINITY,
    names: propertyNames === undefined ? [] : [{ schema: propertyNames, path: `${path}.propertyNames` }],
    clauses: [
      {
        properties: new Map(mapOf(schema, 'properties', path)),
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

function countOf(schema: Schema, keyword: string, path: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (Number.isInteger(value) && Number(value) >= 0) return value as number;
  throw new SchemaRefusal(`${path}.${keyword}`, 'must be a whole number that is not negative');
}

/** The schemas of a list. */
export function placesOf(schema: Schema, keyword: string, path: string): Place[] {
  const list = schema[keyword];
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new SchemaRefusal(`${path}.${keyword}`, 'must be an array of schemas');
  return list.map((item: unknown, index) => ({ schema: item, path: `${path}.${keyword}[${index}]` }));
}

function mapOf(schema: Schema, keyword: string, path: string): [string, Place][] {
  const map = schema[keyword];
  if (map === undefined) return [];
  if (!isObject(map)) throw new SchemaRefusal(`${path}.${keyword}`, 'must be an object of schemas');
  return Object.entries(map).map(([name, item]) => [
    name,
    { schema: item, path: memberPath(`${path}.${keyword}`, name) },
  ]);
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
