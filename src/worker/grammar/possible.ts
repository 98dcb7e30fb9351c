import { numbersBetween, wholeBounds } from './number-range.js';
import type { SchemaReader } from './schema-reader.js';
import { itemNode, type Node, prefixLength, propertyNames, propertyNode, type Shape } from './shape.js';

/** The nodes of the parts that a value of this shape may have. */
export function childNodes(shape: Shape, reader: SchemaReader): Node[] {
  if (shape.kind === 'array') {
    const count = Math.min(prefixLength(shape) + 1, shape.maxItems);
    return Array.from({ length: count }, (_, index) => itemNode(shape, index));
  }
  if (shape.kind !== 'object') return [];
  const additional = reader.additionalNode(shape);
  return [
    ...allNames(shape, reader).map((name) => propertyNode(shape, name)),
    ...patternNodes(shape, reader).map(({ node }) => node),
    ...(additional ? [additional] : []),
  ];
}

/** The names a property may have that are known: those mentioned, and those that propertyNames lists. */
export function allNames(shape: Shape & { kind: 'object' }, reader: SchemaReader): string[] {
  const listed = shape.names.length === 0 ? [] : reader.shapesOf(shape.names);
  const names = listed.flatMap((name) =>
    name.kind === 'constant' && typeof name.value === 'string' ? [name.value] : [],
  );
  const mentioned = propertyNames(shape);
  const isOpen = reader.additionalNode(shape) !== undefined;
  return [...new Set([...mentioned, ...(isOpen ? names : [])])].filter(
    (name) => shape.names.length === 0 || reader.fits(name, shape.names),
  );
}

/** Properties whose names match a pattern of patternProperties, and no other. */
export function patternNodes(
  shape: Shape & { kind: 'object' },
  reader: SchemaReader,
): { source: string; node: Node }[] {
  const sources = [...new Set(shape.clauses.flatMap(({ patterns }) => patterns.map(([source]) => source)))];
  return sources.flatMap((source) => {
    const node = shape.clauses.flatMap(({ patterns, additional }): Node => {
      const own = patterns.filter(([other]) => other === source).map(([, place]) => place);
      return own.length > 0 ? own : additional ? [additional] : [];
    });
    return node.some(({ schema }) => schema === false) || reader.shapesOf(node).length === 0
      ? []
      : [{ source, node }];
  });
}

/** Whether some value is of this shape, given which nodes some value fits. */
export function isPossible(shape: Shape, reader: SchemaReader, holds: (node: Node) => boolean): boolean {
  switch (shape.kind) {
    case 'constant':
      return true;
    case 'number': {
      if (!shape.whole) return numbersBetween(shape) !== undefined;
      const { first, last } = wholeBounds(shape);
      return first <= last;
    }
    case 'string':
      return shape.minLength <= shape.maxLength;
    case 'array':
      return (
        shape.minItems <= shape.maxItems &&
        Array.from({ length: Math.min(shape.minItems, prefixLength(shape) + 1) }, (_, index) =>
          itemNode(shape, index),
        ).every(holds)
      );
    case 'object': {
      const { required, minProperties, maxProperties } = shape;
      if (minProperties > maxProperties || required.size > maxProperties) return false;
      const names = new Set(allNames(shape, reader));
      return [...required].every((name) => names.has(name) && holds(propertyNode(shape, name)));
    }
    default:
      return shape satisfies never;
  }
}
