import type { Automaton } from './automaton.js';
import { AutomatonTooLarge } from './automaton-states.js';
import { SchemaRefusal } from './schema-refusal.js';

/** An automaton of what stands at `path`. @throws SchemaRefusal when it is too large. */
export function bounded(path: string, build: () => Automaton): Automaton {
  try {
    return build();
  } catch (error) {
    if (error instanceof AutomatonTooLarge) throw new SchemaRefusal(path, 'is too large to be held exactly');
    throw error;
  }
}
