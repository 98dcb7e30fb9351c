import { space } from './json-rules.js';
import { SchemaRefusal } from './schema-refusal.js';
import type { SchemaWriter } from './schema-writer.js';
import { type ArrayShape, itemNode, prefixLength } from './shape.js';

/** Items that are counted one by one. */
const maxCounted = 5_000;

/** An array in EBNF: the items with a schema of their own one after the other, then a run of the others. */
export function writeArray(shape: ArrayShape, writer: SchemaWriter): string {
  const { minItems, path } = shape;
  const own = prefixLength(shape);
  const impossible = Array.from({ length: own + 1 }, (_, index) => index).find(
    (index) => !writer.isPossible(itemNode(shape, index)),
  );
  const maxItems = Math.min(shape.maxItems, impossible ?? Number.POSITIVE_INFINITY);
  if (minItems > maxCounted) throw new SchemaRefusal(`${path}.minItems`, `is more than ${maxCounted}`);
  if (Number.isFinite(maxItems) && maxItems > maxCounted) {
    throw new SchemaRefusal(`${path}.maxItems`, `is more than ${maxCounted}`);
  }
  const close = `${space} "]"`;
  const comma = `"," ${space}`;
  // From the end: what may follow once `index` items are there, each of the prefix optional from minItems on.
  const prefix = Math.min(own, maxItems);
  let rest = runOf(shape, { writer, from: prefix, maxItems, comma });
  rest = rest === '' ? close : `${rest} ${close}`;
  for (let index = prefix - 1; index >= 0; index--) {
    const item = writer.ruleOf(itemNode(shape, index));
    const more = `${index > 0 ? `${comma} ` : ''}${item} ${rest}`;
    const body = index >= minItems ? writer.book.any([more, close]) : more;
    rest = writer.book.add('item', body);
  }
  return `"[" ${space} ${rest}`;
}

/** The items behind the prefix: `from` are there. */
function runOf(
  shape: ArrayShape,
  { writer, from, maxItems, comma }: { writer: SchemaWriter; from: number; maxItems: number; comma: string },
): string {
  const fewest = Math.max(0, shape.minItems - from);
  const most = maxItems - from;
  if (most <= 0) return '';
  const item = writer.ruleOf(itemNode(shape, prefixLength(shape)));
  const count = (min: number, max: number) =>
    max === Number.POSITIVE_INFINITY ? (min === 0 ? '*' : `{${min},}`) : `{${min},${max}}`;
  if (from > 0) return `(${comma} ${item})${count(fewest, most)}`;
  const others = most > 1 ? ` (${comma} ${item})${count(Math.max(0, fewest - 1), most - 1)}` : '';
  return fewest === 0 ? `(${item}${others})?` : `${item}${others}`;
}
