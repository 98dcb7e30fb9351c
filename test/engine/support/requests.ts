import type { DecoderEngine } from '../../../src/engine/decoder-engine.js';
import type { EngineEvent, GenerateRequest, Sampling } from '../../../src/engine/request.js';

export const greedy: Sampling = {
  temperature: 0,
  topP: 1,
  topK: -1,
  minP: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  seed: 0,
  logitBias: [],
};

export function generateRequest(id: string, fields: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    id,
    scope: 'account',
    prompt: Int32Array.of(1, 2, 3),
    maxTokens: 4,
    choices: 1,
    sampling: greedy,
    endTokens: [],
    priority: 'interactive',
    ...fields,
  };
}

/** `length` tokens that depend on `seed`. */
export function prompt(length: number, seed = 0): Int32Array {
  return Int32Array.from({ length }, (_, index) => (7 * seed + 3 * index + ((index * seed) % 5)) % 64);
}

/** Steps until nothing is left to do; returns every event. */
export async function drain(engine: { readonly busy: boolean; step(): Promise<EngineEvent[]> }) {
  const events: EngineEvent[] = [];
  for (let steps = 0; engine.busy; steps++) {
    if (steps > 10_000) throw new Error('the engine does not come to rest');
    events.push(...(await engine.step()));
  }
  return events;
}

/** The tokens of one choice, in order. */
export function tokensOf(events: readonly EngineEvent[], id: string, choice = 0): number[] {
  return events.flatMap((event) =>
    event.type === 'token' && event.id === id && event.choice === choice ? [event.token] : [],
  );
}

/** The tokens that one request gives when it has an engine to itself. */
export async function alone(engine: DecoderEngine, request: GenerateRequest, choice = 0): Promise<number[]> {
  engine.generate(request);
  return tokensOf(await drain(engine), request.id, choice);
}
