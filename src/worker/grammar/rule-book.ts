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
  readonly #counted = new Map<string, string>();
  readonly #automata = new Map<string, string>();

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

  /**
   * A string that is counted beside the grammar. `content` is what stands between the quotes; any text when it is left
   * out.
   */
  countedString(rule: StringRule, content?: Automaton): string {
    const inner = content === undefined ? 'counted' : this.automaton(content, sealedQuote);
    const key = JSON.stringify([inner, rule]);
    let name = this.#counted.get(key);
    if (name === undefined) {
      const marker = secretToEbnf(stringMarker(this.#strings.length));
      this.#strings.push(rule);
      name = this.add('string', `${quote} (${marker} | ${inner})`);
      this.#counted.set(key, name);
    }
    return name;
  }

  /** The texts of an automaton and `end` behind them; returns the rule's name. */
  automaton(automaton: Automaton, end: string): string {
    const key = `${end} ${JSON.stringify(automaton.states)}`;
    let name = this.#automata.get(key);
    if (name === undefined) {
      const rules = this.#rules;
      name = automaton.write(end, {
        newName: () => rules.newName('text'),
        define: (own, body) => rules.define(own, body),
        share: (body) => rules.share('text', body),
      });
      this.#automata.set(key, name);
    }
    return name;
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
