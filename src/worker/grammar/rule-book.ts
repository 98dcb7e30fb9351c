import { type Grammar, type StringRule, stringMarker, stringSeal } from '../../engine/grammar.js';
import type { Automaton } from './automaton.js';
import { jsonRules, quote, stringRules } from './json-rules.js';
import { Rules } from './rules.js';

const sealedQuote = `${quote} ${secretToEbnf(stringSeal)}`;
const countedRules = stringRules('counted', sealedQuote);

/** The rules of one grammar as they are gathered, beside those of JSON: `value`, `object`, `string` and so on. */
export class RuleBook {
  readonly #rules = new Rules();
  readonly #strings: StringRule[] = [];
  /** What was written, by keys that say what it is. */
  readonly #written = new Map<string, string>();

  /** EBNF written so far. */
  get characters(): number {
    return this.#rules.characters;
  }

  /** A name that no rule has, for one that is defined later. */
  newName(prefix: string): string {
    return this.#rules.newName(prefix);
  }

  define(name: string, body: string): void {
    this.#rules.define(name, body);
  }

  /** A rule that is `body`; returns its name. */
  add(prefix: string, body: string): string {
    return this.#rules.share(prefix, body);
  }

  /** What `write` returns, written once for all that have the same key. */
  once(key: string, write: () => string): string {
    const text = this.#written.get(key) ?? write();
    this.#written.set(key, text);
    return text;
  }

  /**
   * A string that is counted beside the grammar. `content` is what stands between the quotes; any text when it is left
   * out.
   */
  countedString(rule: StringRule, content?: Automaton): string {
    const inner = content === undefined ? 'counted' : this.automaton(content, sealedQuote);
    return this.once(JSON.stringify([inner, rule]), () => {
      const marker = secretToEbnf(stringMarker(this.#strings.length));
      this.#strings.push(rule);
      return this.add('string', `${quote} (${marker} | ${inner})`);
    });
  }

  /** The texts of an automaton and `end` behind them; returns the rule's name. */
  automaton(automaton: Automaton, end: string): string {
    const rules = this.#rules;
    return this.once(`${end} ${JSON.stringify(automaton.states)}`, () =>
      automaton.write(end, {
        newName: () => rules.newName('text'),
        define: (own, body) => rules.define(own, body),
        share: (body) => rules.share('text', body),
      }),
    );
  }

  /** Any one of several rules. Each is a rule of its own: parts that they share are not mixed up then. */
  any(alternatives: readonly string[]): string {
    if (alternatives.length === 1) return alternatives[0]!;
    return alternatives.map((body) => (/^\w+$/.test(body) ? body : this.add('part', body))).join(' | ');
  }

  /** The grammar of which `body` is the whole text. */
  grammar(body: string): Grammar {
    return {
      ebnf: [
        `root ::= ${body}`,
        ...this.#rules.lines,
        ...jsonRules,
        ...(this.#strings.length > 0 ? countedRules : []),
        '',
      ].join('\n'),
      strings: this.#strings,
    };
  }
}

function secretToEbnf(text: string): string {
  const spelled = Array.from(text, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? `\\u${code.toString(16).padStart(4, '0')}` : character;
  });
  return `"${spelled.join('')}"`;
}
