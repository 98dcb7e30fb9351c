/** Selection without sorting, over a vocabulary's worth of numbers. Equal values are told apart by their index. */

/** Index of the largest value; the first of equals. -1 when there is none (all NaN). */
export function indexOfLargest(values: Float32Array): number {
  let best = -1;
  for (
    let index = nextAbove(values, 0, Number.NEGATIVE_INFINITY);
    index < values.length;
    index = nextAbove(values, index + 1, values[index]!)
  ) {
    best = index;
  }
  return best;
}

/** Index of the first value above `floor`, from `from` on; the length when there is none. Four at a time: quicker. */
function nextAbove(values: Float32Array, from: number, floor: number): number {
  const { length } = values;
  let index = from;
  while (
    index + 3 < length &&
    !(
      values[index]! > floor ||
      values[index + 1]! > floor ||
      values[index + 2]! > floor ||
      values[index + 3]! > floor
    )
  ) {
    index += 4;
  }
  while (index < length && !(values[index]! > floor)) index++;
  return index;
}

/**
 * Writes the indices of the `count` largest values to `indices`, in ascending order. One pass with a min-heap of that
 * size, whose root hardly any value passes; those that do are noted, and sifted at the end.
 *
 * `count` is at least 1 and at most `values.length`; `indices` has room for as many as there are values.
 */
export function indicesOfLargest(values: Float32Array, count: number, indices: Int32Array): void {
  const heap = new Float64Array(values.subarray(0, count));
  for (let index = (count >> 1) - 1; index >= 0; index--) siftDown(heap, index);
  for (let index = 0; index < count; index++) indices[index] = index;
  let root = heap[0]!;
  let noted = count;
  for (
    let index = nextAbove(values, count, root);
    index < values.length;
    index = nextAbove(values, index + 1, root)
  ) {
    indices[noted++] = index;
    heap[0] = values[index]!;
    siftDown(heap, 0);
    root = heap[0]!;
  }
  // Of the values equal to the smallest that stays, the heap holds as many as there is room for: the first ones.
  let ties = 0;
  for (const value of heap) if (value === root) ties++;
  let kept = 0;
  for (let note = 0; note < noted; note++) {
    const index = indices[note]!;
    const value = values[index]!;
    if (value > root || (value === root && ties-- > 0)) indices[kept++] = index;
  }
}

function siftDown(heap: Float64Array, from: number): void {
  const value = heap[from]!;
  let index = from;
  for (;;) {
    let child = 2 * index + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= value) break;
    heap[index] = heap[child]!;
    index = child;
  }
  heap[index] = value;
}

/** Keeps every value above `threshold`, and the first `ties` of those equal to it. */
export interface Cutoff {
  readonly threshold: number;
  readonly ties: number;
}

/**
 * The cutoff that keeps the fewest of the largest `weights` whose sum reaches `mass`: quickselect that follows the
 * sum instead of the rank. Reorders `weights`, which are not negative.
 */
export function massCutoff(weights: Float64Array, mass: number): Cutoff {
  let start = 0;
  let end = weights.length;
  let kept = 0;
  while (start < end) {
    const pivot = middleOfThree(weights[start]!, weights[(start + end) >> 1]!, weights[end - 1]!);
    let above = start;
    let below = end;
    let sumAbove = 0;
    for (let index = start; index < below; ) {
      const weight = weights[index]!;
      if (weight > pivot) {
        sumAbove += weight;
        weights[index] = weights[above]!;
        weights[above++] = weight;
        index++;
      } else if (weight < pivot) {
        weights[index] = weights[--below]!;
        weights[below] = weight;
      } else {
        index++;
      }
    }
    if (kept + sumAbove >= mass) {
      end = above;
      continue;
    }
    const equals = below - above;
    if (kept + sumAbove + equals * pivot >= mass) {
      return { threshold: pivot, ties: Math.max(1, Math.ceil((mass - kept - sumAbove) / pivot)) };
    }
    kept += sumAbove + equals * pivot;
    start = below;
  }
  return { threshold: 0, ties: Number.POSITIVE_INFINITY };
}

function middleOfThree(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
