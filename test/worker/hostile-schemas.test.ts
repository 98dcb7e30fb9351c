import { afterAll, expect, it } from 'vitest';
import { ServiceError } from '../../src/contract/errors.js';
import { ReplyGrammars } from '../../src/worker/reply-grammars.js';
import { toolFormatOf } from '../../src/worker/tools/tool-format.js';
import { FakeEngine } from './support/fake-engine.js';
import { chatTokenizer, decoderManifest } from './support/workbench.js';

type Schema = Record<string, unknown>;

const grammars = new ReplyGrammars({
  engine: new FakeEngine(decoderManifest),
  manifest: decoderManifest,
  tokenizer: chatTokenizer,
  format: toolFormatOf(null),
  probeScript: new URL('../../dist/worker/grammar-probe-thread.js', import.meta.url),
  limitMs: 500,
});
afterAll(() => grammars.close());

const list = <T>(length: number, item: (index: number) => T): T[] =>
  Array.from({ length }, (_, index) => item(index));
const members = (length: number, member: (index: number) => unknown): Schema =>
  Object.fromEntries(list(length, (index) => [`p${index}`, member(index)]));
const nested = (depth: number, wrap: (inner: Schema) => Schema): Schema =>
  list(depth, () => wrap).reduce<Schema>((inner, around) => around(inner), { type: 'null' });
const text = (pattern: string, others: Schema = {}): Schema => ({ type: 'string', pattern, ...others });

/** Schemas that are hard, or mean nothing; what becomes of each is the compiler's to say, and not for long. */
const schemas: Readonly<Record<string, unknown>> = {
  'objects in objects, 2,000 deep': nested(2_000, (a) => ({
    type: 'object',
    properties: { a },
    required: ['a'],
  })),
  'arrays in arrays, 3,000 deep': nested(3_000, (items) => ({ type: 'array', items })),
  'alternatives in alternatives, 1,000 deep': nested(1_000, (inner) => ({ anyOf: [inner] })),
  'alternatives that multiply': {
    allOf: list(30, (index) => ({ anyOf: [{ required: [`a${index}`] }, { required: [`b${index}`] }] })),
  },
  'references that multiply': {
    $ref: '#/$defs/p0',
    $defs: {
      ...members(30, (index) => ({
        allOf: [{ $ref: `#/$defs/p${index + 1}` }, { anyOf: [{ $ref: `#/$defs/p${index + 1}` }] }],
      })),
      p30: { type: 'object', properties: { a: { type: 'null' } } },
    },
  },
  'a reference to itself': { $ref: '#' },
  'references in a circle': {
    $ref: '#/$defs/p0',
    $defs: members(30, (index) => ({ $ref: `#/$defs/p${(index + 1) % 30}` })),
  },
  'objects that need each other without end': {
    $ref: '#/$defs/p0',
    $defs: members(2, (index) => ({ properties: { a: { $ref: `#/$defs/p${1 - index}` } }, required: ['a'] })),
  },
  'objects that refer to three others each': {
    $ref: '#/$defs/p0',
    $defs: members(300, (index) => ({
      type: 'object',
      properties: members(3, (other) => ({ $ref: `#/$defs/p${(3 * index + other) % 300}` })),
    })),
  },
  'parts that grow as they are joined': {
    $ref: '#/$defs/a',
    $defs: {
      a: {
        allOf: [{ properties: { x: { $ref: '#/$defs/a' } } }, { properties: { x: { $ref: '#/$defs/b' } } }],
      },
      b: {
        properties: { x: { allOf: [{ $ref: '#/$defs/a' }, { properties: { y: { $ref: '#/$defs/a' } } }] } },
      },
    },
  },
  'an enum of 50,000 texts': { enum: list(50_000, (index) => `value ${index * 7919}`) },
  'an enum of 50,000 numbers': { type: 'integer', enum: list(50_000, (index) => index * 3) },
  'a constant of a million characters': { const: 'x'.repeat(1_000_000) },
  'oneOf 2,000 constants': { oneOf: list(2_000, (index) => ({ const: index })) },
  'anyOf 5,000 objects': { anyOf: list(5_000, (index) => ({ properties: { [`p${index}`]: {} } })) },
  '10,000 properties': { type: 'object', properties: members(10_000, () => ({ type: 'string' })) },
  '10,000 required names': { type: 'object', required: list(10_000, (index) => `p${index}`) },
  'half of 1,000 properties': { properties: members(1_000, () => ({ type: 'null' })), minProperties: 500 },
  '100 patterns of names': {
    type: 'object',
    patternProperties: Object.fromEntries(list(100, (index) => [`a${index}.*b`, { type: 'null' }])),
  },
  'a tuple of 20,000': { type: 'array', prefixItems: list(20_000, () => ({ type: 'null' })) },
  'arrays of 5,000 in arrays': nested(6, (items) => ({ items, type: 'array', minItems: 9, maxItems: 5_000 })),
  'an array of a billion': { type: 'array', minItems: 1e9 },
  'a string as long as there can be': { type: 'string', minLength: 1e14, maxLength: 1e15 },
  'a pattern of 50,000 letters': text(`^${'x'.repeat(50_000)}$`),
  'a pattern of 20,000 alternatives': text(`^(${'abc|'.repeat(20_000)}d)$`),
  'a pattern of 100,000 characters': text('^.{100000}$'),
  'counts inside counts': text('^(((a{50}){50}){50}){50}$'),
  'a count beyond all counts': text('^(ab?){4294967295,}$'),
  'a pattern with a state for each text': text('^(a|b)*a(a|b){20}$'),
  'a pattern that backtracks without end': text('^(a+)+$', { enum: [`${'a'.repeat(60)}!`] }),
  'a pattern of names that backtracks without end': {
    patternProperties: { '^(a+)+$': {} },
    properties: { [`${'a'.repeat(60)}!`]: {} },
  },
  '3,000 groups in groups': text(`${'('.repeat(3_000)}a${')'.repeat(3_000)}`),
  'Unicode properties': text('^\\p{L}+$'),
  'a look ahead': text('^(?=a)b'),
  'a look behind': text('(?<=a)b'),
  'a reference to a group': text('^(a)\\1$'),
  'a boundary of words': text('\\bfoo'),
  'a class without characters': text('[]'),
  'half of a surrogate pair': text('\\ud800'),
  'no pattern at all': text('('),
  'patterns and a length together': { allOf: [text('a', { maxLength: 3_000 }), text('b')] },
  'a multiple of next to nothing': { type: 'number', multipleOf: 1e-300 },
  'multiples without a common one': { allOf: [{ multipleOf: 999_983 }, { multipleOf: 999_979 }] },
  'numbers beyond all digits': { type: 'number', minimum: 1e300, maximum: 1e308 },
  'a name of every object': JSON.parse(
    '{"properties":{"__proto__":{"type":"null"}},"required":["__proto__"]}',
  ),
  'names of every object': { properties: { constructor: { type: 'null' } }, required: ['toString'] },
  'a reference to a name of every object': { $ref: '#/__proto__/toString' },
  'a reference elsewhere': { $ref: 'https://example.com/schema.json' },
  'keywords that hold anything but what they should': {
    type: [[]],
    enum: {},
    required: 3,
    properties: [],
    items: 'x',
    pattern: {},
    $ref: null,
  },
};

it.each(Object.entries(schemas))('compiles or refuses %s', async (_, schema) => {
  const json_schema = { name: 'x', schema: schema as Schema };
  const given = await grammars
    .of({ responseFormat: { type: 'json_schema', json_schema } })
    .catch((error: unknown) => error);
  if (given instanceof ServiceError) {
    expect(given.kind).toBe('invalidParameter');
    expect(given.message).toMatch(/^response_format\.json_schema\.schema[^:]*: ./);
  } else {
    expect(given).toHaveProperty('ebnf');
  }
});
