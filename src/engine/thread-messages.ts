import type { Manifest } from '../models/manifest.js';
import type { EngineSettings } from './engine.js';
import type { Vocabulary } from './grammar.js';
import type { EncodeRequest, EngineCounters, EngineEvent, GenerateRequest } from './request.js';

/** What the worker's main thread and the engine's thread say to each other. */

/** `workerData` of the engine's thread. */
export interface ThreadData {
  readonly settings: EngineSettings;
}

/** An encode request with all its sequences end to end, so that three arrays cross instead of thousands. */
export interface PackedEncodeRequest {
  readonly id: string;
  readonly priority: EncodeRequest['priority'];
  readonly lengths: Int32Array;
  readonly tokens: Int32Array;
  readonly types: Int32Array | undefined;
}

export type ToThread =
  | { readonly type: 'vocabulary'; readonly vocabulary: Vocabulary }
  | { readonly type: 'generate'; readonly request: GenerateRequest }
  | { readonly type: 'encode'; readonly request: PackedEncodeRequest }
  | { readonly type: 'cancel'; readonly id: string; readonly choice: number | undefined }
  | { readonly type: 'counters'; readonly ask: number }
  | { readonly type: 'close' };

export type FromThread =
  | { readonly type: 'ready'; readonly manifest: Manifest }
  | { readonly type: 'events'; readonly events: readonly EngineEvent[] }
  | { readonly type: 'counters'; readonly ask: number; readonly counters: EngineCounters };

/** Copies the sequences, which stay the caller's. */
export function packEncodeRequest({ id, priority, sequences }: EncodeRequest): PackedEncodeRequest {
  const lengths = Int32Array.from(sequences, ({ tokens }) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const typed = sequences.length > 0 && sequences.every(({ types }) => types !== undefined);
  const tokens = new Int32Array(total);
  const types = typed ? new Int32Array(total) : undefined;
  let at = 0;
  for (const sequence of sequences) {
    tokens.set(sequence.tokens, at);
    if (sequence.types) types?.set(sequence.types, at);
    at += sequence.tokens.length;
  }
  return { id, priority, lengths, tokens, types };
}

export function unpackEncodeRequest({
  id,
  priority,
  lengths,
  tokens,
  types,
}: PackedEncodeRequest): EncodeRequest {
  let at = 0;
  const sequences = Array.from(lengths, (length) => {
    const start = at;
    at += length;
    return {
      tokens: tokens.subarray(start, at),
      ...(types && { types: types.subarray(start, at) }),
    };
  });
  return { id, priority, sequences };
}
