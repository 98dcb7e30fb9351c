import { SchemaRefusal } from './schema-refusal.js';

/** A schema that is an object. */
export type Schema = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

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
export type TypeName = (typeof typeNames)[number];

/** @throws SchemaRefusal when a schema says what a grammar here cannot hold. */
export function refuseUnsupported(schema: Schema, path: string): void {
  for (const keyword of unsupported) {
    if (schema[keyword] !== undefined) throw new SchemaRefusal(`${path}.${keyword}`, 'is not supported');
  }
  if (schema.uniqueItems === true) throw new SchemaRefusal(`${path}.uniqueItems`, 'is not supported');
}

/** Whether a schema says something of a type by itself, and not only through others. */
export function speaksOfTypes(schema: Schema): boolean {
  return 'type' in schema || Object.values(keywords).some((names) => names.some((name) => name in schema));
}

/** Without `type`, the types that the keywords speak of are meant; a schema without any takes every type. */
export function typesOf(schema: Schema, path: string): TypeName[] {
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
