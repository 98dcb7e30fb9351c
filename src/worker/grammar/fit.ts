import { isDeepStrictEqual } from 'node:util';
import { hasFormat } from './formats.js';
import { isObject } from './schema-keywords.js';
import { itemNode, type Node, propertyNode, type Shape } from './shape.js';

/** Whether a value is of a shape; `fits` says so of its parts. */
export function isOfShape(
  value: unknown,
  shape: Shape,
  fits: (value: unknown, node: Node) => boolean,
): boolean {
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
      return value.every((item, index) => fits(item, itemNode(shape, index)));
    case 'object': {
      if (!isObject(value)) return false;
      const names = Object.keys(value);
      if (names.length < shape.minProperties || names.length > shape.maxProperties) return false;
      if ([...shape.required].some((name) => !Object.hasOwn(value, name))) return false;
      return names.every((name) => fits(name, shape.names) && fits(value[name], propertyNode(shape, name)));
    }
    default:
      return shape satisfies never;
  }
}
