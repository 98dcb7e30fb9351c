import ajvModule from 'ajv/dist/2020.js';
import formatsModule from 'ajv-formats';
import { expect, it } from 'vitest';
import { GrammarCache } from '../../../src/engine/grammar-cache.js';
import { writeSchema } from '../../../src/worker/grammar/json-grammar.js';
import { RuleBook } from '../../../src/worker/grammar/rule-book.js';
import { vocabularyOf } from '../../../src/worker/grammar/vocabulary.js';
import { chatTokenizer, decoderManifest } from '../support/workbench.js';
import { randomText } from './random-text.js';
import { schemas } from './schemas.js';

const vocabulary = vocabularyOf({
  tokenizer: chatTokenizer,
  manifest: decoderManifest,
  spelledTokens: new Set(),
});
const cache = new GrammarCache(vocabulary);
const ajv = new ajvModule.default({ strict: false });
formatsModule.default(ajv);

for (const [title, schema] of Object.entries(schemas)) {
  it(`${title}: every text fits`, async () => {
    const book = new RuleBook();
    const root = writeSchema({ schema, path: 'schema' }, book, { strict: false });
    const grammar = book.grammar(root);
    const validate = ajv.compile(schema as object);
    const seen = new Set<string>();
    let complete = 0;
    for (let seed = 0; seed < 30; seed++) {
      const reply = await randomText(cache, grammar, { vocabulary, seed });
      if (!reply.complete) continue;
      complete++;
      seen.add(reply.text);
      const value: unknown = JSON.parse(reply.text);
      expect(validate(value), `${reply.text}: ${ajv.errorsText(validate.errors)}`).toBe(true);
    }
    expect(complete).toBeGreaterThan(15);
  });
}
