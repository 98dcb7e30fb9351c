import {
  between,
  choice,
  type Expression,
  literal,
  nothing,
  optional,
  repeat,
  sequence,
} from './expression.js';

/** A bound of a range; `exclusive` when the number itself is outside. */
export interface Bound {
  readonly value: number;
  readonly exclusive: boolean;
}

/** Numbers between two bounds, each of which may be missing. */
export interface NumberRange {
  readonly min: Bound | undefined;
  readonly max: Bound | undefined;
}

/** Numbers of so many decimal digits are told apart and compared exactly by double-precision floats. */
const exactDigits = 15;
const largest = 10 ** exactDigits - 1;
const digit = between('0', '9');

/** Any number that JSON can say and a float can hold. */
export const anyNumber: Expression = sequence([
  optional(literal('-')),
  choice([literal('0'), sequence([between('1', '9'), repeat(digit, 0, exactDigits - 1)])]),
  optional(sequence([literal('.'), repeat(digit, 1, exactDigits)])),
  optional(
    sequence([
      choice([literal('e'), literal('E')]),
      optional(choice([literal('-'), literal('+')])),
      repeat(digit, 1, 2),
    ]),
  ),
]);

/** The whole numbers of a range: its ends, at most 15 digits long. */
export function wholeBounds({ min, max }: NumberRange): { first: number; last: number } {
  const first =
    min === undefined ? -largest : min.exclusive ? Math.floor(min.value) + 1 : Math.ceil(min.value);
  const last = max === undefined ? largest : max.exclusive ? Math.ceil(max.value) - 1 : Math.floor(max.value);
  return { first: Math.max(first, -largest), last: Math.min(last, largest) };
}

/** The whole numbers `first`..`last`, written without fraction or exponent; undefined when there are none. */
export function wholeNumbers(first: number, last: number): Expression | undefined {
  if (first > last) return undefined;
  const parts: Expression[] = [];
  if (last >= 0) parts.push(...naturals(Math.max(0, first), last));
  if (first < 0) {
    parts.push(sequence([literal('-'), choice(naturals(Math.max(1, -last), -first))]));
  }
  return choice(parts);
}

/** The numbers of a range, written without exponent; undefined when there are none of 15 digits. */
export function numbersBetween({ min, max }: NumberRange): Expression | undefined {
  const parts: Expression[] = [];
  if (max === undefined || max.value > 0 || (max.value === 0 && !max.exclusive)) {
    const low = min === undefined || min.value < 0 ? { value: 0, exclusive: false } : min;
    parts.push(...magnitudes(low, max));
  }
  if (min === undefined || min.value < 0) {
    const low = max !== undefined && max.value < 0 ? mirror(max) : { value: 0, exclusive: true };
    const below = magnitudes(low, min && mirror(min));
    if (below.length > 0) parts.push(sequence([literal('-'), choice(below)]));
  }
  return parts.length > 0 ? choice(parts) : undefined;
}

function mirror({ value, exclusive }: Bound): Bound {
  return { value: -value, exclusive };
}

/** Decimals from `low`, which is not negative, to `high`. */
function magnitudes(low: Bound, high: Bound | undefined): Expression[] {
  const [lowWhole, lowFraction] = decimal(low.value);
  const [highWhole, highFraction] = decimal(high?.value ?? Math.max(999_999_999, low.value * 10));
  const room = exactDigits - highWhole.length;
  if (room < 0 || low.value > largest) return [];
  const [first, last] = [Number(lowWhole), Number(highWhole)];
  const upper = { digits: highFraction, inclusive: !high?.exclusive };
  const lower = { digits: lowFraction, inclusive: !low.exclusive };
  if (first > last) return [];
  if (first === last) {
    return withFraction(literal(lowWhole), fractionsBetween(lower, upper, room));
  }
  const inside = first + 1 <= last - 1 ? [choice(naturals(first + 1, last - 1))] : [];
  return [
    ...withFraction(literal(lowWhole), fractionsFrom(lower, room)),
    ...inside.flatMap((whole) => withFraction(whole, fractionsFrom({ digits: '', inclusive: true }, room))),
    ...withFraction(literal(highWhole), fractionsTo(upper, room)),
  ];
}

/** The digits before and behind the point of a number that is not negative. */
function decimal(value: number): [whole: string, fraction: string] {
  const [mantissa = '', exponent] = String(value).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  if (exponent === undefined) return [whole, fraction];
  const shift = Number(exponent);
  if (shift < 0) return ['0', '0'.repeat(-shift - whole.length) + whole + fraction];
  return [whole + fraction.padEnd(shift, '0'), ''];
}

/** Natural numbers `first`..`last`, by their length. */
function naturals(first: number, last: number): Expression[] {
  const parts: Expression[] = [];
  if (first === 0) parts.push(literal('0'));
  let from = Math.max(1, first);
  while (from <= last) {
    const length = String(from).length;
    const isRound = from === 10 ** (length - 1);
    const longest = String(last + 1).length - 1;
    if (isRound && longest >= length) {
      parts.push(sequence([between('1', '9'), repeat(digit, length - 1, longest - 1)]));
      from = 10 ** longest;
      continue;
    }
    const to = Math.min(last, 10 ** length - 1);
    parts.push(sameLength(String(from), String(to)));
    from = to + 1;
  }
  return parts;
}

/** Digit strings from `from` to `to`, which are of one length. */
function sameLength(from: string, to: string): Expression {
  if (from === '') return nothing;
  if (/^0*$/.test(from) && /^9*$/.test(to)) return repeat(digit, from.length, from.length);
  const [low, high] = [Number(from[0]), Number(to[0])];
  const rest = from.length - 1;
  if (low === high) return sequence([literal(from[0]!), sameLength(from.slice(1), to.slice(1))]);
  const isWholeLow = /^0*$/.test(from.slice(1));
  const isWholeHigh = /^9*$/.test(to.slice(1));
  const parts: Expression[] = [];
  if (!isWholeLow) {
    parts.push(sequence([literal(from[0]!), sameLength(from.slice(1), '9'.repeat(rest))]));
  }
  const [first, last] = [isWholeLow ? low : low + 1, isWholeHigh ? high : high - 1];
  if (first <= last) {
    parts.push(sequence([between(String(first), String(last)), repeat(digit, rest, rest)]));
  }
  if (!isWholeHigh) parts.push(sequence([literal(to[0]!), sameLength('0'.repeat(rest), to.slice(1))]));
  return choice(parts);
}

/** Digits behind a point, as a bound. */
interface FractionBound {
  readonly digits: string;
  readonly inclusive: boolean;
}

/** Digits behind a point: those in `some`, and whether there may be none. */
interface Fractions {
  readonly some: readonly Expression[];
  readonly none: boolean;
}

function withFraction(whole: Expression, { some, none }: Fractions): Expression[] {
  return [
    ...(none ? [whole] : []),
    ...(some.length > 0 ? [sequence([whole, literal('.'), choice(some)])] : []),
  ];
}

function fractionsFrom({ digits, inclusive }: FractionBound, room: number): Fractions {
  if (digits === '' && inclusive) return { some: room > 0 ? [repeat(digit, 1, room)] : [], none: true };
  if (room === 0) return { some: [], none: false };
  const first = Number(digits[0] ?? 0);
  const more = first < 9 ? [tail(first + 1, 9, room)] : [];
  const same = after(first, fractionsFrom({ digits: digits.slice(1), inclusive }, room - 1));
  return { some: [...more, ...same], none: false };
}

function fractionsTo({ digits, inclusive }: FractionBound, room: number): Fractions {
  if (digits === '') return { some: [], none: inclusive };
  if (room === 0) return { some: [], none: true };
  const first = Number(digits[0]);
  const less = first > 0 ? [tail(0, first - 1, room)] : [];
  return {
    some: [...less, ...after(first, fractionsTo({ digits: digits.slice(1), inclusive }, room - 1))],
    none: true,
  };
}

function fractionsBetween(lower: FractionBound, upper: FractionBound, room: number): Fractions {
  const none = lower.digits === '' && lower.inclusive && (upper.digits !== '' || upper.inclusive);
  const [low, high] = [Number(lower.digits[0] ?? 0), Number(upper.digits[0] ?? 0)];
  if (room === 0 || (upper.digits === '' && lower.digits === '')) return { some: [], none };
  const lowRest = { ...lower, digits: lower.digits.slice(1) };
  const highRest = { ...upper, digits: upper.digits.slice(1) };
  if (low > high) return { some: [], none };
  if (low === high) return { some: after(low, fractionsBetween(lowRest, highRest, room - 1)), none };
  return {
    some: [
      ...after(low, fractionsFrom(lowRest, room - 1)),
      ...(low + 1 <= high - 1 ? [tail(low + 1, high - 1, room)] : []),
      ...after(high, fractionsTo(highRest, room - 1)),
    ],
    none,
  };
}

/** A digit `first`..`last` and any behind it, `room` digits in all. */
function tail(first: number, last: number, room: number): Expression {
  return sequence([between(String(first), String(last)), repeat(digit, 0, room - 1)]);
}

function after(first: number, { some, none }: Fractions): Expression[] {
  const lead = literal(String(first));
  return [...(none ? [lead] : []), ...(some.length > 0 ? [sequence([lead, choice(some)])] : [])];
}
