import { Automaton, type AutomatonRules } from './automaton.js';
import {
  anyCharacter,
  byteClass,
  characterBytes,
  intersect,
  literalToEbnf,
  plainCharacters,
} from './characters.js';
import { anyNumber } from './number-range.js';
import { Rules } from './rules.js';

/**
 * White space where JSON takes any: none, one space, or a new line with its indentation. Never without end. It is a
 * rule, as is what stands behind a name, since the compiler pays for each place of a rule by itself.
 */
export const space = 'space';
/** Behind the name of a property. */
export const colon = 'colon';

export const quote = literalToEbnf('"');

const maxIndentation = 16;

const beyondAscii = intersect(anyCharacter, [[0x80, 0x10ffff]]);

/**
 * The rest of a string behind its opening quote, and `end` behind that: characters as they are, and JSON's escapes but
 * for halves of surrogate pairs.
 */
export function stringRules(body: string, end: string): string[] {
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

/** The rules of JSON itself: `value`, `object`, `string` and so on. */
export const jsonRules: readonly string[] = (() => {
  const parts = new Rules();
  const sink: AutomatonRules = {
    newName: () => parts.newName('json'),
    define: (name, body) => parts.define(name, body),
    share: (body) => parts.share('json', body),
  };
  const number = Automaton.ofExpression(anyNumber).write('""', sink);
  const word = Automaton.ofTexts(['true', 'false', 'null']).write('""', sink);
  const indentation = Array.from({ length: maxIndentation }, (_, index) => `indent${index}`);
  return [
    'value ::= string | number | word | object | array',
    `string ::= ${quote} body`,
    ...stringRules('body', quote),
    `number ::= ${number}`,
    `word ::= ${word}`,
    ...parts.lines,
    `object ::= "{" ${space} ("}" | pair members)`,
    `members ::= ${space} ("}" | "," ${space} pair members)`,
    `pair ::= string ${colon} value`,
    `array ::= "[" ${space} ("]" | value items)`,
    `items ::= ${space} ("]" | "," ${space} value items)`,
    `${space} ::= "" | " " | "\\n" ${indentation[0]}`,
    ...indentation.map((name, index) => `${name} ::= "" | " " ${indentation[index + 1] ?? '""'}`),
    `${colon} ::= ":" | ": "`,
  ];
})();
