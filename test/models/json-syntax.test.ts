import { expect, test } from 'vitest';
import { findJsonSyntaxError } from '../../src/models/json-syntax.js';

test('what JSON.parse takes has no error', () => {
  for (const text of [
    '{}',
    ' [ ] ',
    '{"a": [1, -2.5e+3, "\\u00e9\\"", true, null, {"b": {}}]}',
    '"\u2028"',
    '0',
  ]) {
    expect(() => JSON.parse(text)).not.toThrow();
    expect(findJsonSyntaxError(text), text).toBeUndefined();
  }
});

const errors: ReadonlyArray<[string, number, number, string]> = [
  ['', 1, 1, 'a value'],
  ['{\n"a": 1,\n}', 3, 1, 'a name in double quotes'],
  ['[1, 2,]', 1, 7, 'a value'],
  ['{"a" 1}', 1, 6, '":"'],
  ['{"a": 1 "b": 2}', 1, 9, '"," or "}"'],
  ['[1', 1, 3, '"," or "]"'],
  ['["a\nb"]', 1, 2, 'a string that ends on its line'],
  ["{'a': 1}", 1, 2, 'a name in double quotes'],
  ['{} // why', 1, 4, 'the end of the file'],
  ['[01]', 1, 3, '"," or "]"'],
  ['[NaN]', 1, 2, 'a value'],
];

for (const [text, line, column, expected] of errors) {
  test(`${JSON.stringify(text)} goes wrong at ${line}:${column}`, () => {
    expect(() => JSON.parse(text)).toThrow();
    expect(findJsonSyntaxError(text)).toEqual({ line, column, expected });
  });
}
