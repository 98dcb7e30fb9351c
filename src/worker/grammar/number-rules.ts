import { Automaton } from './automaton.js';
import { bounded } from './bounded-automaton.js';
import { between, choice, type Expression, literal, optional, repeat, sequence } from './expression.js';
import { anyNumber, numbersBetween, wholeBounds, wholeNumbers } from './number-range.js';
import { SchemaRefusal } from './schema-refusal.js';
import type { NumberShape } from './shape.js';

/** Multiples that are written out one by one. */
const maxMultiples = 500;

/** The numbers of a shape, as JSON writes them. @throws SchemaRefusal */
export function numberAutomaton(shape: NumberShape): Automaton {
  const { whole, min, max, multiplesOf, path } = shape;
  if (!whole) return automatonOf(min || max ? numbersBetween(shape) : anyNumber, path);
  const { first, last } = wholeBounds(shape);
  if (multiplesOf.length === 0) return automatonOf(wholeNumbers(first, last), path);

  const step = multiplesOf.reduce(leastCommonMultiple);
  const from = Math.ceil(first / step);
  const count = Math.floor(last / step) - from + 1;
  if (count > 0 && count <= maxMultiples) {
    return Automaton.ofTexts(Array.from({ length: count }, (_, index) => String((from + index) * step)));
  }
  const zeros = /^10{1,12}$/.test(String(step)) ? String(step).length - 1 : 0;
  if (count <= 0 || min || max || zeros === 0) {
    throw new SchemaRefusal(
      `${path}.multipleOf`,
      `is supported where it leaves 1 to ${maxMultiples} numbers, and for powers of ten`,
    );
  }
  const digits = repeat(between('0', '9'), 0, 13 - zeros);
  const magnitude = sequence([between('1', '9'), digits, literal('0'.repeat(zeros))]);
  return automatonOf(choice([literal('0'), sequence([optional(literal('-')), magnitude])]), path);
}

function automatonOf(numbers: Expression | undefined, path: string): Automaton {
  if (numbers === undefined) throw new SchemaRefusal(path, 'no number of 15 digits is in its range');
  return bounded(path, () => Automaton.ofExpression(numbers));
}

function leastCommonMultiple(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
}
