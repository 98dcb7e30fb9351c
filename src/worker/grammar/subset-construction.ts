import { AutomatonTooLarge, type ByteRange, maxStates, type State } from './automaton-states.js';
import { characterBytes } from './characters.js';
import type { Expression } from './expression.js';

/** The texts of an expression, as JSON writes them between quotes. @throws AutomatonTooLarge */
export function statesOfExpression(expression: Expression): State[] {
  const builder = new Builder();
  return determine(builder, builder.add(expression));
}

/** Exactly these texts. @throws AutomatonTooLarge */
export function statesOfTexts(texts: readonly string[]): State[] {
  const builder = new Builder();
  return determine(builder, builder.addTexts(texts));
}

/** A part of a nondeterministic automaton: from `start` to `end`. */
interface Part {
  readonly start: number;
  readonly end: number;
}

/** Thompson's construction (1968). */
class Builder {
  readonly edges: (readonly [range: ByteRange, target: number])[][] = [];
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

  #path({ start, end }: Part, bytes: readonly ByteRange[]): void {
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

/** The states of a nondeterministic automaton made deterministic, by the subset construction. */
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
    const byTarget = new Map<number, ByteRange[]>();
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
  return states;
}

function closureOf({ silent }: Builder, members: readonly number[]): number[] {
  const closure = new Set(members);
  for (const member of closure) for (const next of silent[member]!) closure.add(next);
  return [...closure].sort((a, b) => a - b);
}
