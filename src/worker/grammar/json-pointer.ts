import { isObject } from './schema-keywords.js';
import { memberPath, SchemaRefusal } from './schema-refusal.js';
import type { Place } from './shape.js';

/** The schema that `$ref` at `path` names: a JSON pointer (RFC 6901) within `root`. @throws SchemaRefusal */
export function resolve(ref: unknown, root: Place, path: string): Place {
  const missing = new SchemaRefusal(
    `${path}.$ref`,
    `${JSON.stringify(ref)} is not a schema in this document`,
  );
  if (typeof ref !== 'string' || !(ref === '#' || ref.startsWith('#/'))) throw missing;
  let { schema, path: place } = root;
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

function unescapePointer(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return part;
  }
}
