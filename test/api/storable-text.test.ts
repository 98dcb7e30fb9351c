import { expect, it } from 'vitest';
import { storableText } from '../../src/api/storable-text.js';

it('leaves nothing in a text that Postgres cannot store', () => {
  const text = storableText(`a\0b\ud800${'x'.repeat(1_000)}`);
  expect(text).toMatch(/^ab\ufffdx{200,}$/);
  expect(text.length).toBeLessThanOrEqual(256);
});
