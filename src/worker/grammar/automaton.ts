import { product } from './automaton-product.js';
import type { State } from './automaton-states.js';
import { byteClass } from './characters.js';
import type { Expression } from './expression.js';
import { minimal } from './minimal-states.js';
import { statesOfExpression, statesOfTexts } from './subset-construction.js';

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
    return new Automaton(minimal(statesOfExpression(expression)));
  }

  /** Exactly these texts. @throws AutomatonTooLarge */
  static ofTexts(texts: readonly string[]): Automaton {
    return new Automaton(minimal(statesOfTexts(texts)));
  }

  /** The texts that are in both. @throws AutomatonTooLarge */
  and(other: Automaton): Automaton {
    const accepts = (one: boolean, two: boolean) => one && two;
    return new Automaton(minimal(product([this.states, other.states], { accepts, together: true })));
  }

  /** The texts that are not in the other. @throws AutomatonTooLarge */
  without(other: Automaton): Automaton {
    const accepts = (one: boolean, two: boolean) => one && !two;
    return new Automaton(minimal(product([this.states, other.states], { accepts, together: false })));
  }

  /** Whether there is no text. */
  get isEmpty(): boolean {
    const [first] = this.states;
    return !first!.accepting && first!.edges.length === 0;
  }

  /** Whether every beginning of a text is one of texts without number. */
  get isEndless(): boolean {
    // What is left when those are taken away again and again that lead only to such as were taken away.
    const finite = new Set<number>();
    for (let size = -1; size !== finite.size; ) {
      size = finite.size;
      for (const [state, { edges }] of [...this.states.entries()].reverse()) {
        if (edges.every(({ target }) => finite.has(target))) finite.add(state);
      }
    }
    return finite.size === 0;
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
