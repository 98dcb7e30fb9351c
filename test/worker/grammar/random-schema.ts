import type { Random } from '../../../src/engine/random.js';

const names = ['a', 'ab', 'b', 'x_1', 'é'];
const patterns = [
  '^[a-z]{2,5}$',
  'ab?',
  '^x|y$',
  '^(ab|c)+$',
  '[^a-z]',
  '^.{3}$',
  '^\\d+(\\.\\d+)?$',
  '^[é-ü"\\\\]+$',
  '\\s',
  '^[a-c]*$',
  '^[^"]{2,20}$',
  '(?:a|b){2}c{1,}',
];
const formats = ['date', 'email', 'uri', 'uuid', 'ipv4', 'date-time', 'hostname'];
const namePatterns = ['^x', '^[a-b]+$', '1$', '^.$'];
const kinds = [
  'object',
  'object',
  'object',
  'array',
  'string',
  'number',
  'integer',
  'anyOf',
  'allOf',
  'oneOf',
  'types',
  'reference',
  'enum',
] as const;

type Schema = Record<string, unknown>;

/** Schemas by chance, of keywords and values that meet often; the same generator, the same schemas. */
export class RandomSchemas {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A schema with definitions `d` and `e`, which may refer to themselves and to each other. */
  next(): Schema {
    return { ...(this.#schema(3) as Schema), $defs: { d: this.#schema(1), e: this.#schema(2) } };
  }

  #schema(depth: number): unknown {
    if (depth === 0) return this.#leaf();
    const sub = () => this.#schema(depth - 1);
    const kind = this.#pick(kinds);
    switch (kind) {
      case 'object':
        return this.#object(sub);
      case 'array':
        return {
          type: 'array',
          maxItems: this.#below(4),
          ...(this.#maybe(0.7) && { items: sub() }),
          ...(this.#maybe(0.3) && { prefixItems: [sub(), sub()].slice(0, 1 + this.#below(2)) }),
          ...(this.#maybe(0.4) && { minItems: this.#below(3) }),
        };
      case 'string':
        return this.#string();
      case 'number':
      case 'integer':
        return this.#number(kind);
      case 'anyOf':
        return { anyOf: [sub(), sub(), sub()].slice(0, 2 + this.#below(2)) };
      case 'allOf':
      case 'oneOf':
        return { [kind]: [sub(), sub()] };
      case 'types':
        return { type: [...this.#some(['string', 'null', 'integer', 'array'], 0.6), 'boolean'], ...loose };
      case 'reference':
        return { $ref: this.#pick(['#/$defs/d', '#/$defs/e', '#']) };
      case 'enum':
        return { enum: [...this.#some([1, 'two', null, [1], { a: 1 }, 'é', 2.5], 0.6), 'z'] };
      default:
        return kind satisfies never;
    }
  }

  #leaf(): unknown {
    return this.#pick<unknown>([
      { type: 'integer', minimum: this.#below(20) - 10, maximum: 10 + this.#below(2_000) },
      { type: 'null' },
      { type: 'boolean' },
      { enum: ['q', 1, null, 'é"'] },
      { type: 'string', maxLength: this.#below(5) },
      { const: 'k' },
      true,
      { $ref: '#/$defs/d' },
    ]);
  }

  #object(sub: () => unknown): Schema {
    const mentioned = this.#some(names, 0.4);
    return {
      type: 'object',
      ...(mentioned.length > 0 && { properties: Object.fromEntries(mentioned.map((name) => [name, sub()])) }),
      ...(this.#maybe(0.5) && { required: this.#some(names, 0.25) }),
      ...(this.#maybe(0.6) && { additionalProperties: this.#pick<unknown>([false, false, sub(), true]) }),
      ...(this.#maybe(0.15) && { minProperties: this.#below(4) }),
      ...(this.#maybe(0.15) && { maxProperties: this.#below(4) }),
      ...(this.#maybe(0.15) && {
        patternProperties: Object.fromEntries(this.#some(namePatterns, 0.4).map((source) => [source, sub()])),
      }),
      ...(this.#maybe(0.15) && {
        propertyNames: this.#pick<unknown>([
          { maxLength: 3 },
          { maxLength: 1 },
          { pattern: '^[a-z_0-9]+$' },
          { pattern: '^[ab]{1,2}$' },
          { enum: ['a', 'zz', 'x_1'] },
        ]),
      }),
    };
  }

  #string(): Schema {
    return {
      type: 'string',
      ...(this.#maybe(0.5) && { minLength: this.#below(6) }),
      ...(this.#maybe(0.8) && { maxLength: 3 + this.#below(40) }),
      ...(this.#maybe(0.5) && { pattern: this.#pick(patterns) }),
      ...(this.#maybe(0.1) && { format: this.#pick(formats) }),
    };
  }

  #number(type: 'number' | 'integer'): Schema {
    const value = () =>
      type === 'integer'
        ? this.#below(5_000) - 2_500
        : this.#pick([
            this.#random.next() * 10 - 5,
            this.#below(1_000) / 100 - 5,
            this.#below(100) - 50,
            this.#random.next() * 1e-6,
            (this.#random.next() - 0.5) * 1e10,
          ]);
    return {
      type,
      ...(this.#maybe(0.5) && { [this.#pick(['minimum', 'exclusiveMinimum'])]: value() }),
      ...(this.#maybe(0.5) && { [this.#pick(['maximum', 'exclusiveMaximum'])]: value() }),
      ...(this.#maybe(0.15) && { multipleOf: 1 + this.#below(20) }),
    };
  }

  #below(limit: number): number {
    return Math.floor(this.#random.next() * limit);
  }

  #maybe(chance: number): boolean {
    return this.#random.next() < chance;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#below(list.length)]!;
  }

  #some<T>(list: readonly T[], chance: number): T[] {
    return list.filter(() => this.#maybe(chance));
  }
}

const loose = { maxLength: 4, maxItems: 1, minimum: 3 };

const pieces = [...'",}]10-.aé :{', 'null', 'e5', '\\u0041', '"a":1,', '"ab":null,', 'true'];

/** A text with something taken out, put in or doubled. */
export function mutate(text: string, random: Random): string {
  const below = (limit: number) => Math.floor(random.next() * limit);
  const at = below(text.length + 1);
  const to = Math.min(text.length, at + below(6));
  const piece = pieces[below(pieces.length)]!;
  const from = below(text.length);
  const mutants = [
    text.slice(0, at) + text.slice(to),
    text.slice(0, at) + piece + text.slice(at),
    text.slice(0, at) + piece + text.slice(to),
    text.slice(0, to) + text.slice(at),
    text.slice(0, at) + text.slice(from, from + 8) + text.slice(at),
  ];
  return mutants[below(mutants.length)]!;
}
