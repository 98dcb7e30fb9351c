import { expect, it } from 'vitest';
import { isNestedDeeperThan } from '../../src/api/nesting.js';
import { fc } from '../support/property.js';

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

it('a value is as deep as its objects and arrays lie inside each other, whatever its strings hold', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('[', '{"a":[', '\\', '"', '\\"', '\\\\"[', ']}'));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 6 },
      text,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(text, tie('value'), { maxKeys: 3 }),
    ),
  }));
  fc.assert(
    fc.property(value, (json) => {
      const bytes = Buffer.from(JSON.stringify(json));
      const depth = depthOf(json);
      expect(isNestedDeeperThan(bytes, depth)).toBe(false);
      expect(isNestedDeeperThan(bytes, depth - 1)).toBe(depth > 0);
    }),
  );
});

it.each(['"never ends [[[', '"ends in a backslash \\', ']]]]', ''])(
  'what is not JSON is looked at to its end: %j',
  (text) => {
    expect(isNestedDeeperThan(Buffer.from(text), 1)).toBe(false);
  },
);
