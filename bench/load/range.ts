import { InvalidArgumentError } from 'commander';
import type { Random } from '../../src/engine/random.js';

/** Whole numbers from `min` to `max`, each as likely as the other; one number when both are the same. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/**
 * `64`, or `16-128` for a range.
 * @throws InvalidArgumentError for anything else.
 */
export function parseRange(text: string): Range {
  const match = /^([1-9]\d{0,6})(?:-([1-9]\d{0,6}))?$/.exec(text);
  const min = Number(match?.[1]);
  const max = Number(match?.[2] ?? min);
  if (match !== null && min <= max) return { min, max };
  throw new InvalidArgumentError(
    'It must be a whole number of at least 1, or a range of two such as 16-128.',
  );
}

/** Always takes one number from `random`, so that what is drawn after it does not depend on the range. */
export function drawFrom({ min, max }: Range, random: Random): number {
  return min + Math.floor(random.next() * (max - min + 1));
}
