import { byteClass, characterBytes } from './characters.js';
import type { Expression } from './expression.js';

/** Too many states to be worth compiling. */
export class AutomatonTooLarge extends Error {
  override readonly name = 'AutomatonTooLarge';
}

const maxStates = 20_000;

type Range = readonly [first: number, last: number];

/** Where a state goes, and with which bytes. */
interface Edge {
  readonly ranges: Range[];
  readonly target: number;
}

interface State {
  readonly accepting: boolean;
  readonly edges: readonly Edge[];
}

/** Where the rules of an automaton are written. */
export interface AutomatonRules {
  /** A name for a rule that is defined later. */
  newName(): string;
  define(name: string, body: string): string;
  /** A rule that is `body`, the same one for the same body; returns its name. */
  share(body: string): string;
}

/**
 * A deterministic automaton over bytes, state 0 first. The grammar compiler is exact for rules that take a byte and
 * go on to another rule; alternatives of longer texts that share parts it may mix up. So whatever is regular is
 * written as the rules of such an automaton.
 */
export class Automaton {
  readonly states: readonly State[];

  private constructor(states: readonly State[]) {
    this.states = states;
  }

  /** The texts of an expression, as JSON writes them between quotes. @throws AutomatonTooLarge */
  static ofExpression(expression: Expression): Automaton {
    const builder = new Builder();
    return new Automaton(determine(builder, builder.add(expression)));
  }

  /** Exactly these texts. @throws AutomatonTooLarge */
  static ofTexts(texts: readonly string[]): Automaton {
    const builder = new Builder();
    return new Automaton(determine(builder, builder.addTexts(texts)));
  }

  /**
   * Writes the rules of the states, each behind those that it leads to, and returns the name of the first one. Behind
   * the last byte of a text stands `end`.
   */
  write(end: string, rules: AutomatonRules): string {
    const names = new Map<number, string>();
    /** States whose rules are being written, and their names where something led back to them. */
    const open = new Map<number, string | undefined>();
    const refer = (target: number): string => {
      const name = names.get(target) ?? open.get(target) ?? rules.newName();
      if (!names.has(target)) open.set(target, name);
      return name;
    };
    const waiting = [0];
    for (let state = waiting.at(-1); state !== undefined; state = waiting.at(-1)) {
      const { text, last } = this.#run(state);
      const { accepting, edges } = this.states[state]!;
      if (!names.has(state) && !open.has(state)) {
        open.set(state, undefined);
        const targets = text === '' ? edges.map(({ target }) => target) : [last];
        waiting.push(...targets.filter((target) => !names.has(target) && !open.has(target)));
        continue;
      }
      waiting.pop();
      if (names.has(state)) continue;
      const alternatives =
        text === ''
          ? edges.map(({ ranges, target }) => `${byteClass(ranges)} ${refer(target)}`)
          : [`"${text}" ${refer(last)}`];
      const body = [...(accepting ? [end] : []), ...alternatives].join(' | ');
      const own = open.get(state);
      names.set(state, own === undefined ? rules.share(body) : rules.define(own, body));
    }
    return names.get(0)!;
  }

  /** The plain bytes that must come from a state on, and the state behind them. */
  #run(state: number): { text: string; last: number } {
    let text = '';
    let last = state;
    const seen = new Set([state]);
    for (;;) {
      const { accepting, edges } = this.states[last]!;
      const [edge] = edges;
      if (accepting || edges.length !== 1 || edge!.ranges.length !== 1) break;
      const [first, end] = edge!.ranges[0]!;
      if (first !== end || first < 0x20 || first > 0x7e || seen.has(edge!.target)) break;
      const character = String.fromCharCode(first);
      text += character === '"' || character === '\\' ? `\\${character}` : character;
      last = edge!.target;
      seen.add(last);
    }
    return { text, last };
  }
}

/** A part of a nondeterministic automaton: from `start` to `end`. */
interface Part {
  readonly start: number;
  readonly end: number;
}

/** Thompson's construction (1968). */
class Builder {
  readonly edges: (readonly [range: Range, target: number])[][] = [];
  readonly silent: number[][] = [];

  add(expression: Expression): Part {
    switch (expression.type) {
      case 'characters': {
        const part = { start: this.#state(), end: this.#state() };
        for (const bytes of characterBytes(expression.characters)) this.#path(part, bytes);
        return part;
      }
      case 'sequence': {
        const start = this.#state();
        const end = expression.items.reduce((from, item) => this.#after(from, item), start);
        return { start, end };
      }
      case 'choice': {
        const part = { start: this.#state(), end: this.#state() };
        for (const item of expression.items) {
          const { start, end } = this.add(item);
          this.silent[part.start]!.push(start);
          this.silent[end]!.push(part.end);
        }
        return part;
      }
      case 'repeat': {
        const { item, min, max } = expression;
        const start = this.#state();
        let from = start;
        for (let count = 0; count < min; count++) from = this.#after(from, item);
        const end = this.#state();
        this.silent[from]!.push(end);
        if (max === Number.POSITIVE_INFINITY) {
          const loop = this.#state();
          this.silent[from]!.push(loop);
          const back = this.#after(loop, item);
          this.silent[back]!.push(loop, end);
        }
        for (let count = min; count < max && max !== Number.POSITIVE_INFINITY; count++) {
          from = this.#after(from, item);
          this.silent[from]!.push(end);
        }
        return { start, end };
      }
      default:
        return expression satisfies never;
    }
  }

  addTexts(texts: readonly string[]): Part {
    const part = { start: this.#state(), end: this.#state() };
    const nodes = new Map<string, number>();
    for (const text of texts) {
      let from = part.start;
      let path = '';
      for (const byte of Buffer.from(text)) {
        path += String.fromCharCode(byte);
        let next = nodes.get(path);
        if (next === undefined) {
          next = this.#state();
          nodes.set(path, next);
          this.edges[from]!.push([[byte, byte], next]);
        }
        from = next;
      }
      this.silent[from]!.push(part.end);
    }
    return part;
  }

  #after(from: number, item: Expression): number {
    const { start, end } = this.add(item);
    this.silent[from]!.push(start);
    return end;
  }

  #path({ start, end }: Part, bytes: readonly Range[]): void {
    let from = start;
    for (const [index, range] of bytes.entries()) {
      const next = index === bytes.length - 1 ? end : this.#state();
      this.edges[from]!.push([range, next]);
      from = next;
    }
  }

  #state(): number {
    if (this.edges.length === 20 * maxStates) throw new AutomatonTooLarge();
    this.edges.push([]);
    this.silent.push([]);
    return this.edges.length - 1;
  }
}

/** The subset construction, and then as few states as there can be. */
function determine(builder: Builder, { start, end }: Part): State[] {
  const ids = new Map<string, number>();
  const sets: (readonly number[])[] = [];
  const idOf = (set: readonly number[]): number => {
    const key = set.join();
    let id = ids.get(key);
    if (id === undefined) {
      if (sets.length === maxStates) throw new AutomatonTooLarge();
      id = sets.push(set) - 1;
      ids.set(key, id);
    }
    return id;
  };
  idOf(closureOf(builder, [start]));
  const states: State[] = [];
  for (let id = 0; id < sets.length; id++) {
    const set = sets[id]!;
    const edges = set.flatMap((member) => builder.edges[member]!);
    const bounds = [...new Set(edges.flatMap(([[first, last]]) => [first, last + 1]))].sort((a, b) => a - b);
    const byTarget = new Map<number, Range[]>();
    for (const [index, first] of bounds.slice(0, -1).entries()) {
      const last = bounds[index + 1]! - 1;
      const targets = edges.filter(([[from, to]]) => from <= first && last <= to).map(([, target]) => target);
      if (targets.length === 0) continue;
      const target = idOf(closureOf(builder, targets));
      const ranges = byTarget.get(target) ?? [];
      const before = ranges.at(-1);
      if (before && before[1] === first - 1) ranges[ranges.length - 1] = [before[0], last];
      else ranges.push([first, last]);
      byTarget.set(target, ranges);
    }
    states.push({
      accepting: set.includes(end),
      edges: [...byTarget].map(([target, ranges]) => ({ target, ranges })),
    });
  }
  return minimize(states);
}

function closureOf({ silent }: Builder, members: readonly number[]): number[] {
  const closure = new Set(members);
  for (const member of closure) for (const next of silent[member]!) closure.add(next);
  return [...closure].sort((a, b) => a - b);
}

/** Moore's refinement (1956): states that cannot be told apart become one. */
function minimize(states: readonly State[]): State[] {
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
  const byTarget = new Map<number, Range[]>();
  for (const { target, ranges } of edges) {
    const merged = byTarget.get(classes[target]!) ?? [];
    byTarget.set(classes[target]!, [...merged, ...ranges]);
  }
  return [...byTarget].map(([target, ranges]) => ({ target, ranges: ranges.sort((a, b) => a[0] - b[0]) }));
}
