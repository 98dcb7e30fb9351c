import type { ByteRange, Edge, State } from './automaton-states.js';

/**
 * As few states as there can be: those from which no text ends are left out, and those that cannot be told apart
 * become one (Moore's refinement, 1956).
 */
export function minimal(all: readonly State[]): State[] {
  const states = alive(all);
  let classes: number[] = states.map(({ accepting }) => (accepting ? 1 : 0));
  for (let count = new Set(classes).size; ; ) {
    const ids = new Map<string, number>();
    const current = classes;
    classes = states.map(({ edges }, state) => {
      const parts = edges.map(({ ranges, target }) => `${current[target]}:${ranges.join(';')}`).sort();
      const key = `${current[state]}|${parts.join('|')}`;
      if (!ids.has(key)) ids.set(key, ids.size);
      return ids.get(key)!;
    });
    if (ids.size === count) break;
    count = ids.size;
  }
  // State 0 comes first, so its class is the first that is met.
  const minimal: State[] = [];
  for (const [state, { accepting, edges }] of states.entries()) {
    if (classes[state] !== minimal.length) continue;
    minimal.push({ accepting, edges: mergeEdges(edges, classes) });
  }
  return minimal;
}

function mergeEdges(edges: readonly Edge[], classes: readonly number[]): Edge[] {
  const byTarget = new Map<number, ByteRange[]>();
  for (const { target, ranges } of edges) {
    const merged = byTarget.get(classes[target]!) ?? [];
    byTarget.set(classes[target]!, [...merged, ...ranges]);
  }
  return [...byTarget].map(([target, ranges]) => ({ target, ranges: ranges.sort((a, b) => a[0] - b[0]) }));
}

/** The states from which some text ends; the first one stays. */
function alive(states: readonly State[]): State[] {
  const sources = states.map((): number[] => []);
  for (const [state, { edges }] of states.entries())
    for (const { target } of edges) sources[target]!.push(state);
  const living = new Set(states.flatMap(({ accepting }, state) => (accepting ? [state] : [])));
  for (const state of living) for (const source of sources[state]!) living.add(source);
  const kept = states.flatMap((_, state) => (state === 0 || living.has(state) ? [state] : []));
  const places = new Map(kept.map((state, place) => [state, place]));
  return kept.map((state) => ({
    accepting: states[state]!.accepting,
    edges: states[state]!.edges.filter(({ target }) => living.has(target)).map(({ ranges, target }) => ({
      ranges,
      target: places.get(target)!,
    })),
  }));
}
