/** Bytes, both ends included. */
export type ByteRange = readonly [first: number, last: number];

/** Where a state goes, and with which bytes. */
export interface Edge {
  readonly ranges: readonly ByteRange[];
  readonly target: number;
}

/** A state of a deterministic automaton; the first of a list is the one that begins. */
export interface State {
  readonly accepting: boolean;
  readonly edges: readonly Edge[];
}

/** Too many states to be worth compiling. */
export class AutomatonTooLarge extends Error {
  override readonly name = 'AutomatonTooLarge';
}

/** States that an automaton may have while it is made. */
export const maxStates = 20_000;
