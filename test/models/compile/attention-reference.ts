import type { DecoderConfig } from '../../../src/models/compile/checkpoint.js';

type Shape = Pick<DecoderConfig, 'heads' | 'kvHeads' | 'headSize'>;

/** Rotary positions on the heads of one position, [n * headSize]: halves are turned into each other. */
export function rotate(
  states: ArrayLike<number>,
  position: number,
  headSize: number,
  theta: number,
): number[] {
  const half = headSize / 2;
  return Array.from(states, (own, at) => {
    const element = at % headSize;
    const angle = position * theta ** ((-2 * (element % half)) / headSize);
    const other = element < half ? -states[at + half]! : states[at - half]!;
    return own * Math.cos(angle) + other * Math.sin(angle);
  });
}

/** RMS norm of each head of one position, with the norm's weights. */
export function normHeads(states: ArrayLike<number>, weight: ArrayLike<number>, epsilon: number): number[] {
  const size = weight.length;
  return Array.from(states, (own, at) => {
    const from = at - (at % size);
    let squares = 0;
    for (let element = from; element < from + size; element++) squares += states[element]! ** 2;
    return (own / Math.sqrt(squares / size + epsilon)) * weight[at % size]!;
  });
}

export interface Seen {
  /** The query as it is multiplied with the key at a position, [heads * headSize]. */
  readonly query: (position: number) => ArrayLike<number>;
  /** By position, [kvHeads * headSize]; the last one is the query's own. */
  readonly keys: readonly ArrayLike<number>[];
  readonly values: readonly ArrayLike<number>[];
  /** What products are multiplied by. */
  readonly scale: number;
}

/** Grouped-query attention of one position over those it sees, by its definition; [heads * headSize]. */
export function attend({ heads, kvHeads, headSize }: Shape, { query, keys, values, scale }: Seen): number[] {
  const mixed: number[] = [];
  for (let head = 0; head < heads; head++) {
    const from = Math.floor(head / (heads / kvHeads)) * headSize;
    const scores = keys.map((key, position) => {
      let product = 0;
      for (let at = 0; at < headSize; at++)
        product += query(position)[head * headSize + at]! * key[from + at]!;
      return product * scale;
    });
    const most = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - most));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    for (let at = 0; at < headSize; at++) {
      mixed.push(
        weights.reduce((total, weight, position) => total + weight * values[position]![from + at]!, 0) / sum,
      );
    }
  }
  return mixed;
}
