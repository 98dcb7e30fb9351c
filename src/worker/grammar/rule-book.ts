import { type Grammar, type StringRule, stringMarker, stringSeal } from '../../engine/grammar.js';
import { Automaton } from './automaton.js';
import {
  anyCharacter,
  byteClass,
  characterBytes,
  intersect,
  literalToEbnf,
  plainCharacters,
} from './characters.js';
import { anyNumber } from './number-range.js';

/** White space where JSON takes any: none, one space, or a new line with its indentation. Never without end. */
export const space = '(" " | "\\n" " "{0,16})?';
/** Behind the colon of a property. */
export const colon = '":" " "?';

export const quote = literalToEbnf('"');

const beyondAscii = intersect(anyCharacter, [[0x80, 0x10ffff]]);

/**
 * The rest of a string behind its opening quote, and `end` behind that: characters as they are, and JSON's escapes but
 * for halves of surrogate pairs.
 */
function stringRules(body: string, end: string): string[] {
  const rules: string[] = [];
  const alternatives = [end, `${byteClass(plainCharacters)} ${body}`];
  for (const [index, sequence] of characterBytes(beyondAscii).entries()) {
    for (const [at, range] of sequence.entries()) {
      const text = `${byteClass([range])} ${at === sequence.length - 1 ? body : `${body}${index}x${at + 1}`}`;
      if (at === 0) alternatives.push(text);
      else rules.push(`${body}${index}x${at} ::= ${text}`);
    }
  }
  return [
    `${body} ::= ${alternatives.join(' | ')} | "\\\\" ${body}Escape`,
    ...rules,
    `${body}Escape ::= ["\\\\/bfnrt] ${body} | "u" ${body}Code`,
    `${body}Code ::= [0-9abcefABCEF] ${body}Hex3 | [dD] ${body}Low`,
    `${body}Low ::= [0-7] ${body}Hex2`,
    `${body}Hex3 ::= [0-9a-fA-F] ${body}Hex2`,
    `${body}Hex2 ::= [0-9a-fA-F] ${body}Hex1`,
    `${body}Hex1 ::= [0-9a-fA-F] ${body}`,
  ];
}

const anyRules = [
  `string ::= ${quote} body`,
  ...stringRules('body', quote),
  'value ::= string | number | word | object | array',
  ...automatonRules(Automaton.ofExpression(anyNumber), 'number', '""'),
  ...automatonRules(Automaton.ofTexts(['true', 'false', 'null']), 'word', '""'),
  `object ::= "{" ${space} ("}" | pair members)`,
  `members ::= ${space} ("}" | "," ${space} pair members)`,
  `pair ::= string ${colon} value`,
  `array ::= "[" ${space} ("]" | value items)`,
  `items ::= ${space} ("]" | "," ${space} value items)`,
];

const sealedQuote = `${quote} ${secretToEbnf(stringSeal)}`;
const countedRules = stringRules('counted', sealedQuote);

/** The rules of one grammar as they are gathered, beside those of JSON: `value`, `object`, `string` and so on. */
export class RuleBook {
  readonly #rules = new Map<string, string>();
  readonly #strings: StringRule[] = [];
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
   * A string that is counted beside the grammar. `content` is what stands between the quotes; any text when it is left
   * out.
   */
  countedString(rule: StringRule, content?: Automaton): string {
    const marker = secretToEbnf(stringMarker(this.#strings.length));
    this.#strings.push(rule);
    const inner = content === undefined ? 'counted' : this.automaton(content, sealedQuote);
    return this.add('string', `${quote} (${marker} | ${inner})`);
  }

  /** The texts of an automaton and `end` behind them; returns the rule's name. */
  automaton(automaton: Automaton, end: string): string {
    const start = this.newName('text');
    for (const [name, body] of automaton.rules((state) => stateName(start, state), end))
      this.define(name, body);
    return start;
  }

  /** Any one of several rules. Each is a rule of its own: parts that they share are not mixed up then. */
  any(alternatives: readonly string[]): string {
    if (alternatives.length === 1) return alternatives[0]!;
    return alternatives.map((body) => (/^\w+$/.test(body) ? body : this.add('part', body))).join(' | ');
  }

  /** The grammar of which `body` is the whole text. */
  grammar(body: string): Grammar {
    const own = [...this.#rules].map(([name, text]) => `${name} ::= ${text}`);
    return {
      ebnf: [
        `root ::= ${body}`,
        ...own,
        ...anyRules,
        ...(this.#strings.length > 0 ? countedRules : []),
        '',
      ].join('\n'),
      strings: this.#strings,
    };
  }
}

function automatonRules(automaton: Automaton, name: string, end: string): string[] {
  return [...automaton.rules((state) => stateName(name, state), end)].map(
    ([rule, body]) => `${rule} ::= ${body}`,
  );
}

function stateName(start: string, state: number): string {
  return state === 0 ? start : `${start}s${state}`;
}

function secretToEbnf(text: string): string {
  const spelled = Array.from(text, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? `\\u${code.toString(16).padStart(4, '0')}` : character;
  });
  return `"${spelled.join('')}"`;
}
