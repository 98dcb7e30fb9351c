import { Automaton } from './automaton.js';
import { bounded } from './bounded-automaton.js';
import { anyCharacter } from './characters.js';
import { anyText, type Expression, repeat, sequence, withLength } from './expression.js';
import { formatExpression } from './formats.js';
import { quote } from './json-rules.js';
import { parsePattern } from './pattern.js';
import type { RuleBook } from './rule-book.js';
import { SchemaRefusal } from './schema-refusal.js';
import type { StringShape } from './shape.js';

/** Counting in the grammar costs the compiler a state for each character, so longer runs are counted beside it. */
const maxCountedInGrammar = 8;
/** Characters that one state may take without being costly. */
const maxNarrow = 100;

/**
 * A string of this shape in EBNF.
 * @throws SchemaRefusal when its constraints cannot be held together.
 */
export function writeString(shape: StringShape, book: RuleBook): string {
  const { minLength, maxLength, path } = shape;
  const expressions = expressionsOf(shape);
  const [expression] = expressions;
  if (expression === undefined) {
    if (!isBounded(shape)) return 'string';
    return book.countedString({ minLength, maxLength, excluded: [], endsAnywhere: true });
  }
  if (expressions.length > 1) {
    const texts = bounded(path, () => textsOf(shape, expressions));
    if (texts.isEmpty) throw new SchemaRefusal(path, 'no text has its patterns, format and length together');
    return `${quote} ${book.automaton(texts, quote)}`;
  }
  if (expression.type === 'choice' && isBounded(shape)) {
    const fitting = expression.items.filter((item) => withLength(item, minLength, maxLength) !== undefined);
    if (fitting.length === 0) throw tooShort(shape);
    return book.any(fitting.map((item) => writeExpression(item, shape, book)));
  }
  return writeExpression(expression, shape, book);
}

/** Strings that are left out of others. */
export interface LeftOut {
  readonly texts: readonly string[];
  /** Sources of regular expressions that must find nothing. */
  readonly patterns: readonly string[];
}

/**
 * A string of this shape in EBNF, without those that are left out; undefined when none is left.
 * @throws SchemaRefusal
 */
export function writeOtherString(shape: StringShape, left: LeftOut, book: RuleBook): string | undefined {
  const { minLength, maxLength, path } = shape;
  const expressions = expressionsOf(shape);
  const excluded = left.texts;
  if (expressions.length === 0 && left.patterns.length === 0) {
    return book.countedString({ minLength, maxLength, excluded, endsAnywhere: true });
  }
  const texts = bounded(path, () =>
    left.patterns.reduce(
      (rest, source) => rest.without(Automaton.ofExpression(parsePattern(source))),
      textsOf(shape, expressions),
    ),
  );
  // Of texts without number, however one begins, those that are left out can be passed by; it costs the least.
  if (expressions.length === 0 && !isBounded(shape) && texts.isEndless) {
    return book.countedString({ minLength, maxLength, excluded, endsAnywhere: false }, texts);
  }
  const rest = bounded(path, () =>
    texts.without(Automaton.ofTexts(excluded.map((text) => JSON.stringify(text).slice(1, -1)))),
  );
  return rest.isEmpty ? undefined : `${quote} ${book.automaton(rest, quote)}`;
}

function writeExpression(expression: Expression, shape: StringShape, book: RuleBook): string {
  const { minLength, maxLength, path } = shape;
  const run = expression.type === 'repeat' && expression.item.type === 'characters' ? expression : undefined;
  if (run && !(run.max <= maxCountedInGrammar && isNarrow(run.item))) {
    const limits = { minLength: Math.max(minLength, run.min), maxLength: Math.min(maxLength, run.max) };
    if (limits.minLength > limits.maxLength) throw tooShort(shape);
    const content = automatonOf(repeat(run.item, 0), path);
    return book.countedString({ ...limits, excluded: [], endsAnywhere: true }, content);
  }
  const open = openEnded(expression, shape);
  if (open) {
    const limits = { minLength, maxLength, excluded: [] };
    return book.countedString({ ...limits, endsAnywhere: false }, automatonOf(open, path));
  }
  const fitting = withLength(expression, minLength, maxLength);
  if (fitting === undefined) throw tooShort(shape);
  return `${quote} ${book.automaton(automatonOf(fitting, path), quote)}`;
}

/**
 * Where anything may follow what a pattern demands, and the length has bounds: what it demands first, short enough,
 * and then any text, which is counted.
 */
function openEnded(expression: Expression, shape: StringShape): Expression | undefined {
  if (!isBounded(shape)) return undefined;
  if (expression.type !== 'sequence' || expression.items.at(-1) !== anyText) return undefined;
  const demanded = expression.items.filter((item) => item !== anyText);
  const fitting = withLength(sequence(demanded), 0, shape.maxLength);
  return fitting && sequence([fitting, anyText]);
}

/** Every text of a shape, exactly. @throws AutomatonTooLarge */
function textsOf(shape: StringShape, expressions: readonly Expression[]): Automaton {
  const character: Expression = { type: 'characters', characters: anyCharacter };
  const all = isBounded(shape)
    ? [...expressions, repeat(character, shape.minLength, shape.maxLength)]
    : expressions;
  const automata = all.map((expression) => Automaton.ofExpression(expression));
  return automata.length === 0
    ? Automaton.ofExpression(anyText)
    : automata.reduce((one, other) => one.and(other));
}

function isBounded({ minLength, maxLength }: StringShape): boolean {
  return minLength > 0 || maxLength < Number.POSITIVE_INFINITY;
}

function isNarrow(item: Expression): boolean {
  if (item.type !== 'characters') return false;
  return item.characters.reduce((sum, [first, last]) => sum + last - first + 1, 0) <= maxNarrow;
}

function automatonOf(expression: Expression, path: string): Automaton {
  return bounded(path, () => Automaton.ofExpression(expression));
}

function tooShort({ path }: StringShape): SchemaRefusal {
  return new SchemaRefusal(path, 'its pattern or format does not go with its minLength and maxLength');
}

/** What each pattern and format says. */
function expressionsOf({ patterns, formats }: StringShape): Expression[] {
  return [
    ...formats.flatMap((format) => formatExpression(format) ?? []),
    ...patterns.map((pattern) => parsePattern(pattern)),
  ];
}
