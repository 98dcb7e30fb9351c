import type { Grammar } from '../../../src/engine/grammar.js';
import { writeSchema } from '../../../src/worker/grammar/json-grammar.js';
import { RuleBook } from '../../../src/worker/grammar/rule-book.js';

/** The grammar of a schema that stands at `schema`. @throws SchemaRefusal */
export function schemaGrammar(schema: unknown, { strict = false } = {}): Grammar {
  const book = new RuleBook();
  return book.grammar(writeSchema({ schema, path: 'schema' }, book, { strict }));
}
