import { AutomatonTooLarge, type ByteRange, maxStates, type State } from './automaton-states.js';

/** What stands for the second automaton where it has no way on. */
const nowhere = -1;

/**
 * Two automata side by side. The text is one of the product where `accepts` says so of what each of them says;
 * `together` ends it where the second one has no way on.
 * @throws AutomatonTooLarge
 */
export function product(
  [one, other]: readonly [readonly State[], readonly State[]],
  { accepts, together }: { accepts: (one: boolean, other: boolean) => boolean; together: boolean },
): State[] {
  const ids = new Map<string, number>();
  const pairs: (readonly [number, number])[] = [];
  const idOf = (left: number, right: number): number => {
    const key = `${left},${right}`;
    let id = ids.get(key);
    if (id === undefined) {
      if (pairs.length === maxStates) throw new AutomatonTooLarge();
      id = pairs.push([left, right]) - 1;
      ids.set(key, id);
    }
    return id;
  };
  idOf(0, 0);
  const states: State[] = [];
  for (let id = 0; id < pairs.length; id++) {
    const [left, right] = pairs[id]!;
    const [here, there] = [one[left]!, other[right]];
    const byTarget = new Map<number, ByteRange[]>();
    for (const { ranges, target } of here.edges) {
      for (const range of ranges) {
        for (const [part, next] of split(range, there)) {
          if (next === nowhere && together) continue;
          const pair = idOf(target, next);
          byTarget.set(pair, [...(byTarget.get(pair) ?? []), part]);
        }
      }
    }
    states.push({
      accepting: accepts(here.accepting, there?.accepting ?? false),
      edges: [...byTarget].map(([target, ranges]) => ({ target, ranges })),
    });
  }
  return states;
}

/** The parts of a range by where the state goes with them. */
function split([first, last]: ByteRange, state: State | undefined): [part: ByteRange, target: number][] {
  const parts: [ByteRange, number][] = [];
  const ways = (state?.edges ?? [])
    .flatMap(({ ranges, target }) => ranges.map((range) => ({ range, target })))
    .sort((a, b) => a.range[0] - b.range[0]);
  let next = first;
  for (const { range, target } of ways) {
    const [from, to] = [Math.max(range[0], first), Math.min(range[1], last)];
    if (from > to) continue;
    if (from > next) parts.push([[next, from - 1], nowhere]);
    parts.push([[from, to], target]);
    next = to + 1;
  }
  if (next <= last) parts.push([[next, last], nowhere]);
  return parts;
}
