import { describe, expect, it } from 'vitest';
import { SchemaRefusal } from '../../../src/worker/grammar/schema-refusal.js';
import { takes } from './byte-texts.js';
import { schemaGrammar } from './schema-grammar.js';

/** What a schema is held to: values that it takes, as texts, and texts that it does not. */
interface Case {
  readonly title: string;
  readonly schema: unknown;
  readonly taken: readonly string[];
  readonly refused: readonly string[];
}

async function check({ schema, taken, refused }: Case): Promise<void> {
  const grammar = schemaGrammar(schema);
  for (const text of taken) expect(await takes(grammar, text), `takes ${text}`).toBe(true);
  for (const text of refused) expect(await takes(grammar, text), `takes ${text}`).toBe(false);
}

describe('alternatives that share parts are not mixed up', () => {
  it.each<Case>([
    {
      title: 'multiples in a range',
      schema: { type: 'integer', minimum: -892, maximum: 2136, multipleOf: 8 },
      taken: ['0', '-888', '528', '2136'],
      refused: ['528528', '5288', '154776', '2144', '12'],
    },
    {
      title: 'constants that begin and end alike',
      schema: { enum: ['abcab', 'abab', 'ab', 12, 1212, 'cab'] },
      taken: ['"abcab"', '"abab"', '"ab"', '"cab"', '12', '1212'],
      refused: ['"abcabab"', '"abcabcab"', '"ababab"', '121212', '"c"', '1'],
    },
    {
      title: 'a pattern whose alternatives overlap',
      schema: { type: 'string', pattern: '^(ab|abc|bcab|c)(ab|c)$' },
      taken: ['"abab"', '"abcab"', '"bcabc"', '"cc"', '"abcc"'],
      refused: ['"ab"', '"abcabab"', '"abcabc"', '"c"'],
    },
    {
      title: 'a range of numbers with fractions',
      schema: { type: 'number', minimum: -1.25, maximum: 31.4 },
      taken: ['-1.25', '-1.2', '31.4', '31.39', '3.5', '0'],
      refused: ['-1.251', '-1.3', '31.41', '31.5', '314', '3131'],
    },
  ])('$title', check);
});

describe('a length holds beside a pattern or format', () => {
  it.each<Case>([
    {
      title: 'a run inside a run',
      schema: { type: 'string', pattern: '^(a+)*b*$', maxLength: 3 },
      taken: ['""', '"b"', '"bbb"'],
      refused: ['"bbbb"', '"aaaa"', '"aaabbb"'],
    },
    {
      title: 'a part that stands nowhere',
      schema: { type: 'string', pattern: '^(?:a*){0}[bc]*d*$', maxLength: 4 },
      taken: ['""', '"bd"'],
      refused: ['"ddddd"', '"bcbcd"', '"bbbbb"', '"a"'],
    },
    {
      title: 'a part found anywhere',
      schema: { type: 'string', pattern: '[0-9]b', maxLength: 5 },
      taken: ['"1b"', '"1bxyz"', '"1bé🚀b"'],
      refused: ['"1bwxyz"', '"1"', '"b1xyz"', '"1bwxyz1b"'],
    },
    {
      title: 'a beginning and an end of which one is enough',
      schema: { type: 'string', pattern: '^x|y$', maxLength: 4 },
      taken: ['"x"', '"xabc"', '"y"'],
      refused: ['"xabcd"', '"abcdy"', '"a"'],
    },
    {
      title: 'a format',
      schema: { type: 'string', format: 'email', maxLength: 8 },
      taken: ['"a@b.c"'],
      refused: ['"abc@defg.hi"', '"abcdefgh"'],
    },
  ])('$title', check);
});

describe('a property that is named can be closed', () => {
  it.each<Case>([
    {
      title: 'beside others of any name',
      schema: {
        type: 'object',
        properties: { a: { type: 'integer' }, ab: { type: 'null' } },
        additionalProperties: { type: 'string', maxLength: 2 },
      },
      taken: ['{"a":1}', '{"ab":null}', '{"a":1,"ab":null}', '{"b":"x"}', '{"ab":null,"abc":"x"}'],
      refused: ['{"a":"x"}', '{"ab":"x"}', '{"b":1}', '{"b":"xyz"}'],
    },
    {
      title: 'beside names of a pattern',
      schema: {
        type: 'object',
        properties: { x_1: { type: 'boolean' } },
        patternProperties: { '^x': { type: ['boolean', 'null'] } },
        additionalProperties: false,
      },
      taken: ['{"x_1":true}', '{"x_2":null}', '{"x_1":false,"x_":null}'],
      refused: ['{"x_1":null}', '{"y":null}'],
    },
    {
      title: 'beside names of a length',
      schema: {
        type: 'object',
        properties: { long: { type: 'integer' }, l: { type: 'null' } },
        propertyNames: { maxLength: 4 },
        additionalProperties: { type: 'boolean' },
      },
      taken: ['{"long":1}', '{"l":null}', '{"lo":true}', '{"long":1,"l":null,"lone":true}'],
      refused: ['{"long":true}', '{"longer":true}', '{"l":true}'],
    },
  ])('$title', check);
});

describe('a schema that refers to itself ends', () => {
  it.each([
    ['in its own constant', { type: 'object', properties: { a: { $ref: '#' } }, const: { a: { a: 1 } } }],
    ['in its own enum', { type: 'array', items: { $ref: '#' }, enum: [[[]], []] }],
    ['alone', { $ref: '#' }],
    [
      'alone, in a circle',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
    ],
    ['in all of its parts', { allOf: [{ $ref: '#' }, { type: 'integer' }] }],
    ['in one of its branches', { anyOf: [{ type: 'integer' }, { $ref: '#' }] }],
  ])('%s', (_, schema) => {
    expect(() => schemaGrammar(schema)).toThrow(SchemaRefusal);
  });

  it('in branches that exclude each other', async () => {
    const branch = (kind: string) => ({
      type: 'object',
      properties: { child: { $ref: '#' }, kind: { const: kind } },
      required: ['child', 'kind'],
      additionalProperties: false,
    });
    const grammar = schemaGrammar({ oneOf: [branch('a'), branch('b'), { type: 'null' }] });
    expect(await takes(grammar, '{"child":{"child":null,"kind":"a"},"kind":"b"}')).toBe(true);
    expect(await takes(grammar, '{"child":{"child":1,"kind":"a"},"kind":"b"}')).toBe(false);
  });
});
