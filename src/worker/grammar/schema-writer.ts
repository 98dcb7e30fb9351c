import type { RuleBook } from './rule-book.js';
import type { SchemaReader } from './schema-reader.js';
import type { Node } from './shape.js';

/** What writes the rules of one schema, as the rules of its objects and arrays see it. */
export interface SchemaWriter {
  readonly reader: SchemaReader;
  readonly book: RuleBook;
  /** The name of the rule of a value that fits `node`. */
  ruleOf(node: Node): string;
  /** Whether some value fits. */
  isPossible(node: Node): boolean;
}
