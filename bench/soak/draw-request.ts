import type { Grammar } from '../../src/engine/grammar.js';
import { Random } from '../../src/engine/random.js';
import type { GenerateRequest, Sampling } from '../../src/engine/request.js';
import type { DecoderManifest } from '../../src/models/manifest.js';

/** When its client gives a request up; the rest of it, or one choice only. */
export interface Cancellation {
  /** At once, with the events of the next step, when it is admitted, or when it has brought `tokens` tokens. */
  readonly when: 'sent' | 'waiting' | 'admitted' | 'decoding';
  readonly tokens: number;
  readonly choice: number | undefined;
}

export interface SoakRequest {
  readonly request: GenerateRequest;
  readonly cancellation: Cancellation | undefined;
}

export interface DrawOptions {
  readonly seed: number;
  readonly manifest: Pick<DecoderManifest, 'vocabularySize' | 'endTokens'>;
  /** Tokens of the longest prompt, and of the longest completion. */
  readonly longestPrompt: number;
  readonly longestCompletion: number;
}

const accounts = 3;
/** System prompts that requests of an account share. */
const beginnings = 4;
const endings = ['sent', 'waiting', 'admitted', 'decoding'] as const;

/** Requests with these are as many as there are texts to compile. */
const grammars: readonly Grammar[] = Array.from({ length: 6 }, (_, index) => ({
  ebnf: `root ::= "[" item ("," item)* "]"\nitem ::= [0-9]+ | "${'x'.repeat(index + 1)}"`,
  strings: [],
}));

/** Request `index` of a run: the same options give the same one. */
export function drawRequest(index: number, options: DrawOptions): SoakRequest {
  const { manifest, seed } = options;
  const random = new Random(seed, index);
  const chance = (share: number) => random.next() < share;
  const among = (count: number) => Math.floor(random.next() * count);
  const account = among(accounts);
  const maxTokens = drawLength(options.longestCompletion, random);
  const choices = chance(0.7) ? 1 : 2 + among(2);
  const request: GenerateRequest = {
    id: String(index),
    scope: `account-${account}`,
    prompt: drawPrompt(random, { ...options, shared: chance(0.3) ? among(beginnings) : undefined }),
    maxTokens,
    choices,
    sampling: drawSampling(random, manifest.vocabularySize),
    endTokens: manifest.endTokens,
    priority: chance(0.3) ? 'batch' : 'interactive',
    ...(chance(0.1) && { topLogprobs: among(6) }),
    ...(chance(0.1) && { grammar: grammars[among(grammars.length)]! }),
  };
  const cancellation: Cancellation = {
    when: endings[among(endings.length)]!,
    tokens: 1 + among(maxTokens),
    choice: choices > 1 && chance(0.5) ? among(choices) : undefined,
  };
  return { request, cancellation: chance(0.3) ? cancellation : undefined };
}

/** Short ones are as frequent as long ones: as many between 1 and 10 as between 10 and 100. */
function drawLength(longest: number, random: Random): number {
  return Math.min(longest, Math.floor(longest ** random.next() + random.next()));
}

function drawPrompt(
  random: Random,
  { seed, manifest, longestPrompt, shared }: DrawOptions & { readonly shared: number | undefined },
): Int32Array {
  const fill = (length: number, source: Random) =>
    Int32Array.from({ length }, () => Math.floor(source.next() * manifest.vocabularySize));
  const prompt = fill(drawLength(longestPrompt, random), random);
  if (shared === undefined) return prompt;
  const source = new Random(seed, -1 - shared);
  const beginning = fill(Math.floor(longestPrompt * (0.35 + source.next() / 4)), source);
  return Int32Array.from([...beginning, ...prompt.subarray(0, longestPrompt - beginning.length), 0]);
}

function drawSampling(random: Random, vocabularySize: number): Sampling {
  const isGreedy = random.next() < 0.5;
  const hasPenalties = random.next() < 0.2;
  const biased = random.next() < 0.1 ? 3 : 0;
  return {
    temperature: isGreedy ? 0 : 0.2 + random.next(),
    topP: random.next() < 0.5 ? 1 : 0.5 + random.next() / 2,
    topK: random.next() < 0.5 ? -1 : 1 + Math.floor(random.next() * 100),
    minP: random.next() < 0.8 ? 0 : random.next() / 10,
    frequencyPenalty: hasPenalties ? random.next() : 0,
    presencePenalty: hasPenalties ? random.next() : 0,
    seed: Math.floor(random.next() * 2 ** 32),
    logitBias: Array.from({ length: biased }, () => [Math.floor(random.next() * vocabularySize), 5] as const),
  };
}
