import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Tokenizer } from '../../../src/worker/tokenizer.js';

const fixtures = join(import.meta.dirname, '..', '..', 'fixtures');

export type FixtureModel =
  | 'decoder/llama-tied'
  | 'encoder/bert-cross-encoder'
  | 'encoder/xlm-roberta-cross-encoder'
  | 'encoder/bert-bi-encoder';

export function readFixture(model: FixtureModel, file: string): string {
  return readFileSync(join(fixtures, model, file), 'utf8');
}

export function fixtureTokenizer(model: FixtureModel): Tokenizer {
  return new Tokenizer(readFixture(model, 'tokenizer.json'));
}
