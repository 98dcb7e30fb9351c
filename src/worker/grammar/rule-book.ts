import { type Grammar, type StringRule, stringMarker } from '../../engine/grammar.js';
import { charactersToEbnf, literalToEbnf } from './characters.js';
import { expressionToEbnf } from './expression.js';
import { anyNumber } from './number-range.js';

/** White space where JSON takes any: none, one space, or a new line with its indentation. Never without end. */
export const space = '(" " | "\\n" " "{0,16})?';
/** Behind the colon of a property. */
export const colon = '":" " "?';

/**
 * The rest of a string behind its opening quote, with the closing one. Rules refer to each other on the right only,
 * so that the compiler can tell most tokens from the state alone.
 */
const stringRules = (() => {
  const multiByte = charactersToEbnf([
    [0x80, 0xd7ff],
    [0xe000, 0x10ffff],
  ])
    .slice(1, -1)
    .split(' | ');
  const plain = '[\\u0020-\\u0021\\u0023-\\u005b\\u005d-\\u007f]';
  const rules = [`string ::= "\\"" body`];
  const alternatives = ['"\\""', `${plain} body`];
  for (const [index, sequence] of multiByte.entries()) {
    const bytes = sequence.split(' ');
    alternatives.push(`${bytes[0]} tail${index}x1`);
    for (let at = 1; at < bytes.length; at++) {
      const next = at === bytes.length - 1 ? 'body' : `tail${index}x${at + 1}`;
      rules.push(`tail${index}x${at} ::= ${bytes[at]} ${next}`);
    }
  }
  rules.push(`body ::= ${alternatives.join(' | ')} | "\\\\" escape`);
  rules.push('escape ::= ["\\\\/bfnrt] body | "u" ([0-9abcefABCEF] hex hex hex | [dD] [0-7] hex hex) body');
  rules.push('hex ::= [0-9a-fA-F]');
  return rules;
})();

const anyRules = [
  'value ::= string | number | "true" | "false" | "null" | object | array',
  `number ::= ${expressionToEbnf(anyNumber)}`,
  `object ::= "{" ${space} ("}" | pair members)`,
  `members ::= ${space} ("}" | "," ${space} pair members)`,
  `pair ::= string ${colon} value`,
  `array ::= "[" ${space} ("]" | value items)`,
  `items ::= ${space} ("]" | "," ${space} value items)`,
];

/** The rules of one grammar as they are gathered, beside those of JSON: `value`, `object`, `string` and so on. */
export class RuleBook {
  readonly #rules = new Map<string, string>();
  readonly #strings: StringRule[] = [];
  readonly #stringNames = new Map<string, string>();
  #characters = 0;

  /** EBNF written so far. */
  get characters(): number {
    return this.#characters;
  }

  /** A name that no rule has. */
  newName(prefix: string): string {
    let index = this.#rules.size;
    while (this.#rules.has(`${prefix}${index}`)) index++;
    this.#rules.set(`${prefix}${index}`, '""');
    return `${prefix}${index}`;
  }

  define(name: string, body: string): void {
    this.#rules.set(name, body);
    this.#characters += body.length;
  }

  /** A rule that is `body`; returns its name. */
  add(prefix: string, body: string): string {
    const name = this.newName(prefix);
    this.define(name, body);
    return name;
  }

  /**
   * A string that is counted beside the grammar. `content` is EBNF of what stands behind the opening quote, the
   * closing one included; any text when it is left out.
   */
  countedString(rule: StringRule, content = 'body'): string {
    const key = JSON.stringify([rule, content, rule.maxLength === Number.POSITIVE_INFINITY]);
    let name = this.#stringNames.get(key);
    if (name === undefined) {
      const marker = stringMarker(this.#strings.length);
      const escaped = marker.replace('\u0001', '\\u0001').replace('\u0002', '\\u0002');
      this.#strings.push(rule);
      name = this.add('counted', `"\\"" ("${escaped}" | ${content})`);
      this.#stringNames.set(key, name);
    }
    return name;
  }

  /** The grammar of which `body` is the whole text. */
  grammar(body: string): Grammar {
    const own = [...this.#rules].map(([name, text]) => `${name} ::= ${text}`);
    return {
      ebnf: [`root ::= ${body}`, ...own, ...anyRules, ...stringRules, ''].join('\n'),
      strings: this.#strings,
    };
  }
}

/** A JSON value as it is written without white space. */
export function constantToEbnf(value: unknown): string {
  return literalToEbnf(JSON.stringify(value));
}

export const quote = literalToEbnf('"');
