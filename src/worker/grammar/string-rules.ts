import { Automaton } from './automaton.js';
import { bounded } from './bounded-automaton.js';
import { anyText, type Expression, lengthsOf, repeat, sequence, withLength } from './expression.js';
import { formatExpression } from './formats.js';
import { quote } from './json-rules.js';
import { parsePattern } from './pattern.js';
import type { RuleBook } from './rule-book.js';
import { SchemaRefusal } from './schema-refusal.js';
import type { LeftOut } from './schema-writer.js';
import type { StringShape } from './shape.js';

/** Counting in the grammar costs the compiler a state for each character, so longer runs are counted beside it. */
const maxCountedInGrammar = 8;
/** Characters that one state may take without being costly. */
const maxNarrow = 100;

const nothingLeftOut: LeftOut = { excluded: [], excludedPatterns: [] };

/**
 * A string of this shape in EBNF, of which some texts are left out.
 * @throws SchemaRefusal when its constraints cannot be held together.
 */
export function writeString(shape: StringShape, book: RuleBook, left: LeftOut = nothingLeftOut): string {
  const expression = expressionOf(shape);
  const { minLength, maxLength } = shape;
  const isWhole = left.excluded.length === 0 && left.excludedPatterns.length === 0;
  const isBounded = minLength > 0 || maxLength < Number.POSITIVE_INFINITY;
  if (expression === undefined) {
    if (isWhole && !isBounded) return 'string';
    return book.countedString({ minLength, maxLength, ...left, endsAnywhere: true });
  }
  if (expression.type === 'choice' && isBounded && isWhole) {
    const fitting = expression.items.filter((item) => withLength(item, minLength, maxLength) !== undefined);
    if (fitting.length === 0) throw tooShort(shape);
    return book.any(fitting.map((item) => writeExpression(item, { shape, book, left })));
  }
  return writeExpression(expression, { shape, book, left });
}

interface StringRules {
  readonly shape: StringShape;
  readonly book: RuleBook;
  readonly left: LeftOut;
}

function writeExpression(expression: Expression, { shape, book, left }: StringRules): string {
  const { minLength, maxLength, path } = shape;
  const isWhole = left.excluded.length === 0 && left.excludedPatterns.length === 0;
  const run = expression.type === 'repeat' && expression.item.type === 'characters' ? expression : undefined;
  if (run && !(isWhole && run.max <= maxCountedInGrammar && isNarrow(run.item))) {
    const limits = { minLength: Math.max(minLength, run.min), maxLength: Math.min(maxLength, run.max) };
    if (limits.minLength > limits.maxLength) throw tooShort(shape);
    const content = automatonOf(repeat(run.item, 0), path);
    return book.countedString({ ...limits, ...left, endsAnywhere: true }, content);
  }
  const open = isWhole ? openEnded(expression, shape) : undefined;
  if (open) {
    const limits = { minLength, maxLength, ...left };
    return book.countedString({ ...limits, endsAnywhere: false }, automatonOf(open, path));
  }
  const fitting = withLength(expression, minLength, maxLength);
  if (fitting === undefined) throw tooShort(shape);
  const content = automatonOf(fitting, path);
  if (isWhole) return `${quote} ${book.automaton(content, quote)}`;
  const isEndless = lengthsOf(fitting).max === Number.POSITIVE_INFINITY;
  const matches = (name: string) => shape.patterns.every((source) => new RegExp(source, 'u').test(name));
  if (!isEndless && left.excluded.some(matches)) {
    throw new SchemaRefusal(path, 'has a pattern of names that other properties have too');
  }
  const any = { minLength: 0, maxLength: Number.POSITIVE_INFINITY };
  return book.countedString({ ...any, ...left, endsAnywhere: false }, content);
}

/**
 * Where anything may follow what a pattern demands, and the length has bounds: what it demands first, short enough,
 * and then any text, which is counted.
 */
function openEnded(expression: Expression, { minLength, maxLength }: StringShape): Expression | undefined {
  if (minLength === 0 && maxLength === Number.POSITIVE_INFINITY) return undefined;
  if (expression.type !== 'sequence' || expression.items.at(-1) !== anyText) return undefined;
  const demanded = expression.items.filter((item) => item !== anyText);
  const fitting = withLength(sequence(demanded), 0, maxLength);
  return fitting && sequence([fitting, anyText]);
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

/** What pattern and format say; undefined for any text. */
function expressionOf({ patterns, formats, path }: StringShape): Expression | undefined {
  if (patterns.length + formats.length > 1) {
    const keyword = formats.length > 0 ? 'format' : 'pattern';
    throw new SchemaRefusal(`${path}.${keyword}`, 'is not supported together with another pattern or format');
  }
  if (formats.length > 0) return formatExpression(formats[0]!);
  return patterns.length > 0 ? parsePattern(patterns[0]!) : undefined;
}
