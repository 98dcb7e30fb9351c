import { ServiceError } from '../../contract/errors.js';

/** A schema that cannot be honoured exactly, and the place in the request where that shows. */
export class SchemaRefusal extends ServiceError {
  /** @param reason completes the path: `is not supported`. */
  constructor(path: string, reason: string) {
    super('invalidParameter', `${path}: ${reason}`);
  }
}

/** The path of a member: `schema.properties.age`, or with brackets where the name is not a plain one. */
export function memberPath(path: string, name: string): string {
  return /^[\w$-]+$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
}
