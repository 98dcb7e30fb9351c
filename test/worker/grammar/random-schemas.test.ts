import ajvModule, { type ValidateFunction } from 'ajv/dist/2020.js';
import formatsModule from 'ajv-formats';
import { expect, it } from 'vitest';
import type { Grammar } from '../../../src/engine/grammar.js';
import { GrammarCache } from '../../../src/engine/grammar-cache.js';
import { Random } from '../../../src/engine/random.js';
import { SchemaRefusal } from '../../../src/worker/grammar/schema-refusal.js';
import { vocabularyOf } from '../../../src/worker/grammar/vocabulary.js';
import { chatTokenizer, decoderManifest } from '../support/workbench.js';
import { takes } from './byte-texts.js';
import { mutate, RandomSchemas } from './random-schema.js';
import { randomText } from './random-text.js';
import { schemaGrammar } from './schema-grammar.js';

const vocabulary = vocabularyOf({
  tokenizer: chatTokenizer,
  manifest: decoderManifest,
  spelledTokens: new Set(),
});
const cache = new GrammarCache(vocabulary, { maxGrammars: 4 });
/** For a longer look: how many schemas, and the seed of the first. */
const count = Number(process.env.HEADRACE_TEST_SCHEMAS ?? 120);
const first = Number(process.env.HEADRACE_TEST_SEED ?? 1);

it('schemas by chance are refused, or every text fits and no text that does not fit is let through', async () => {
  let [refused, texts, mutants] = [0, 0, 0];
  for (let seed = first; seed < first + count; seed++) {
    const random = new Random(seed, 77);
    const schema = new RandomSchemas(random).next();
    const shown = `seed ${seed}: ${JSON.stringify(schema)}`;
    const grammar = grammarOrRefusal(schema, shown);
    const validate = grammar && validator(schema);
    if (!grammar || !validate) {
      refused++;
      continue;
    }
    const fits = (text: string) => isJson(text) && validate(JSON.parse(text));
    for (let draw = 0; draw < 3; draw++) {
      const { text, complete } = await randomText(cache, grammar, {
        vocabulary,
        seed: draw,
        maxTokens: 250,
      }).catch((error: unknown) => expect.fail(`${shown}: ${String(error)}`));
      if (!complete) continue;
      texts++;
      expect(fits(text), `${shown} gave ${text}`).toBe(true);
      for (let mutation = 0; mutation < 6; mutation++) {
        const mutant = mutate(text, random);
        if (fits(mutant)) continue;
        mutants++;
        expect(await takes(grammar, mutant), `${shown} takes ${mutant}`).toBe(false);
      }
    }
  }
  expect(refused).toBeLessThan(count / 2);
  expect(texts).toBeGreaterThan(count);
  expect(mutants).toBeGreaterThan(count);
});

function grammarOrRefusal(schema: unknown, shown: string): Grammar | undefined {
  try {
    return schemaGrammar(schema);
  } catch (error) {
    expect(error, shown).toBeInstanceOf(SchemaRefusal);
    expect((error as SchemaRefusal).message, shown).toMatch(/^schema[^:]*: ./);
    return undefined;
  }
}

/** Undefined where ajv itself gives up: it follows references that go round in a circle until its stack is full. */
function validator(schema: object): ValidateFunction | undefined {
  const ajv = new ajvModule.default({ strict: false });
  formatsModule.default(ajv);
  try {
    return ajv.compile(schema);
  } catch (error) {
    expect(error).toBeInstanceOf(RangeError);
    return undefined;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
